import { SpotifyApi } from "@spotify/web-api-ts-sdk";
import { caught, defineSdk } from "../sdk.js";

const TRACKS = Array.from({ length: 5 }, (_, at) => ({ track: { id: `${at + 1}`, name: `Track ${at + 1}` } }));
const API = "api.spotify.com/v1";

export const sdk = defineSdk({
  package: "@spotify/web-api-ts-sdk",
  provider: "spotify",
  connect: (account) =>
    SpotifyApi.withAccessToken(
      "unused",
      { access_token: "unused", token_type: "Bearer", expires_in: 3600, refresh_token: "" },
      { fetch: account.fetch },
    ),
  routes: () => ({
    [`GET ${API}/me/tracks`]: ({ query }) => {
      const offset = Number(query.get("offset") ?? 0);
      const next = offset + 2 < TRACKS.length ? `https://${API}/me/tracks?offset=${offset + 2}&limit=2` : null;
      return { body: { items: TRACKS.slice(offset, offset + 2), next, total: TRACKS.length } };
    },
    [`POST ${API}/users/ada/playlists`]: ({ body }) => ({ status: 201, body: { id: "p1", got: body.toString() } }),
    [`PUT ${API}/playlists/p1/images`]: ({ body, fields }) => ({
      status: 202,
      body: body.toString() === "/9j/AA==" && fields["content-type"] === "image/jpeg" ? "" : "wrong",
    }),
    [`GET ${API}/albums/*`]: () => ({ status: 404, body: { error: { status: 404, message: "Non existing id" } } }),
    [`GET ${API}/me`]: () => ({ status: 429, fields: { "retry-after": "3" }, body: "Too many requests" }),
  }),
  work: async (spotify) => {
    const first = await spotify.currentUser.tracks.savedTracks(2);
    const pages = [...first.items];
    for (let next = first.next; next; ) {
      const page = await spotify.makeRequest<typeof first>("GET", next.replace("https://api.spotify.com/v1/", ""));
      pages.push(...page.items);
      next = page.next;
    }
    return {
      list: first,
      pages,
      create: await spotify.playlists.createPlaylist("ada", { name: "Grüße", public: false }),
      upload: (await spotify.playlists.addCustomPlaylistCoverImageFromBase64String("p1", "/9j/AA==")) ?? null,
      error: await caught(spotify.albums.get("nowhere"), ({ message }) => message),
      "rate limit": await caught(spotify.currentUser.profile(), ({ message }) => message),
    };
  },
});
