import { describe, expect, it } from "vitest";
import { type BodyInput, bodyFromCall, type DecidedBody } from "../../src/call/body.js";
import { atOnce } from "../../src/lib/turns.js";
import { RelayError } from "../../src/model/errors.js";
import { ROOMY } from "../support/roomy.js";

const FILE = '{"files":[{"content":"iVBORw==","type":"image/png"}]}';
const FILE_BYTES = "\u0089PNG";
const FORM_TYPE = "application/x-www-form-urlencoded";

interface Given {
  readonly payload?: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly payloadTypeFile?: boolean;
  readonly explodeArrays?: boolean;
}

describe("bodyFromCall() method", () => {
  it.each([
    "",
    " ",
    " GET",
    "GET ",
    "GET\u0000",
    "GET\r\n",
    "GET / HTTP/1.1\r\nX: y",
    "ＧＥＴ",
    "po\u017ft",
    "opt\u0131ons",
    "TRACE",
    "CONNECT",
    "PRI",
    "SOURCE",
    "PROPFINDS",
    "M-SEARCH",
    "GETFILES",
    "FORM-POST",
    "MULTIFORM",
    "MULTIFORM-DELETE",
    "MULTIPART-FORM-POST",
    "__proto__",
    "constructor",
    "toString",
    "G".repeat(1000),
  ])("refuses %j without repeating it", (method) => {
    const message = messageOf(method, {});
    expect(message).toMatch(/^method is not supported\. Use GET, HEAD, /);
    if (method.trim() !== "" && method.length > 4) expect(message).not.toContain(`${method}.`);
    expect(message.length).toBeLessThan(250);
  });

  it.each(["PROPFIND", "report", "MKCALENDAR", "Copy", "LOCK", "SEARCH", "QUERY", "PURGE", "VERSION-CONTROL"])(
    "sends %s in upper case, with a body or without one",
    (method) => {
      const real = method.toUpperCase();
      expect(decide(method, {})).toMatchObject({ method: real, body: undefined, contentType: undefined });
      const xml = { body: "<propfind/>", contentType: "application/xml" };
      expect([decide(method, xml).method, ...sent(method, xml)]).toEqual([real, "application/xml", "<propfind/>"]);
      expect(sent(method, { payload: '{"a":1}' })).toEqual(["application/json", '{"a":1}']);
    },
  );

  it.each([
    ["GET", "GET"],
    ["get", "GET"],
    ["Head", "HEAD"],
    ["post", "POST"],
    ["put", "PUT"],
    ["patch", "PATCH"],
    ["delete", "DELETE"],
    ["options", "OPTIONS"],
    ["GetFile", "GET"],
    ["form", "POST"],
    ["multiform-post", "POST"],
    ["Multiform-Put", "PUT"],
    ["MULTIFORM-PATCH", "PATCH"],
  ])("sends %s as %s, without a body when there is nothing to send", (method, real) => {
    const decided = decide(method, { contentType: "application/json" });
    expect(decided).toMatchObject({ method: real, body: undefined, contentType: "application/json", query: [] });
    expect(decide(method, {}).contentType).toBeUndefined();
  });

  it("wants the answer of GETFILE, and of nothing else, as base64", () => {
    expect(decide("GETFILE", {}).answerAs).toBe("base64");
    for (const method of ["GET", "HEAD", "POST", "FORM", "MULTIFORM-POST"]) {
      expect(decide(method, {}).answerAs).toBe("auto");
    }
  });
});

describe("bodyFromCall() payload", () => {
  it.each(["GET", "HEAD", "GETFILE"])("%s puts members into the query, never an error", (method) => {
    const payload = '{"a":1.0,"files":[{"content":"?"}],"b":["x","y"]}';
    expect(decide(method, { payload, contentType: "text/plain", payloadTypeFile: true })).toMatchObject({
      body: undefined,
      contentType: "text/plain",
      query: [
        ["a", "1.0"],
        ["files", '[{"content":"?"}]'],
        ["b", "x,y"],
      ],
    });
  });

  it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s sends the JSON itself", (method) => {
    const payload = Buffer.from('{ "id" : 9007199254740993, "a":1.0,"a":"\\u0061","__proto__":{} }');
    const decided = atOnce(bodyFromCall({ ...input(method, {}), payload }));
    expect(decided.body).toBe(payload);
    expect(decided).toMatchObject({ method, contentType: "application/json", query: [], answerAs: "auto" });
  });

  it.each([
    "application/vnd.api+json",
    "application/json; charset=utf-8",
    "text/json",
    "text/javascript",
    "text/x-json",
    "application/x-amz-json-1.1",
    "application/octet-stream",
    "nonsense",
  ])("keeps the caller's content-type %s", (contentType) => {
    expect(sent("POST", { payload: '{"a":1}', contentType })).toEqual([contentType, '{"a":1}']);
  });

  it.each([
    "text/plain",
    "Text/Plain; charset=utf-8",
    "text/csv",
    "text/xml",
    "application/xml",
    "application/soap+xml",
    "image/png",
    "audio/mpeg",
    "multipart/related; boundary=x",
    "multipart/mixed",
  ])("does not send JSON as %s, and says what to do", (contentType) => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const message = messageOf(method, { payload: '{"a":1}', contentType });
      expect(message).toMatch(
        contentType.startsWith("multipart/") ? /^payload .*MULTIPART-FORM/ : /^payload .* as body/,
      );
      expect(sent(method, { body: "a", contentType })).toEqual([contentType, "a"]);
    }
    // A file says its own type.
    expect(sent("POST", { payload: FILE, contentType })).toEqual(["image/png", FILE_BYTES]);
  });

  it.each(["POST", "PUT", "PATCH"])("%s sends a form with parts when the caller's content-type says so", (method) => {
    for (const contentType of ["multipart/form-data", "Multipart/Form-Data; boundary=theirs"]) {
      expect(sent(method, { payload: '{"a":1}', contentType })).toEqual([
        "multipart/form-data; boundary=BOUNDARY1",
        '--BOUNDARY1\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--BOUNDARY1--\r\n',
      ]);
    }
  });

  it("sends an object without members where the content-type says JSON, and nothing elsewhere (compat C10)", () => {
    for (const contentType of ["application/json", "application/vnd.api+json; charset=utf-8"]) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "QUERY"])
        expect(sent(method, { payload: "{ }", contentType })).toEqual([contentType, "{ }"]);
      for (const method of ["GET", "HEAD", "FORM", "MULTIFORM-POST"])
        expect(decide(method, { payload: "{}", contentType }).body).toBeUndefined();
      expect(sent("POST", { payload: "{}", body: "x", contentType })).toEqual([contentType, "x"]);
      expect(decide("POST", { contentType }).body).toBeUndefined();
    }
    for (const contentType of [undefined, FORM_TYPE, "text/plain", "multipart/form-data"]) {
      const given = contentType === undefined ? { payload: "{}" } : { payload: "{}", contentType };
      expect(decide("POST", given)).toMatchObject({ body: undefined, contentType });
    }
  });

  it("explodes arrays in the query and in forms, and nowhere else", () => {
    const payload = '{"a":[1,2]}';
    const explodeArrays = true;
    expect(decide("GET", { payload, explodeArrays }).query).toEqual([
      ["a", "1"],
      ["a", "2"],
    ]);
    expect(sent("FORM", { payload, explodeArrays })[1]).toBe("a=1&a=2");
    expect(sent("POST", { payload, explodeArrays, contentType: FORM_TYPE })[1]).toBe("a=1&a=2");
    for (const given of [{}, { contentType: "multipart/form-data" }]) {
      const method = "contentType" in given ? "POST" : "MULTIFORM-POST";
      expect(sent(method, { payload, explodeArrays, ...given })[1].match(/name="a"/g)).toHaveLength(2);
    }
    expect(sent("POST", { payload, explodeArrays })).toEqual(["application/json", payload]);
  });

  it.each([FORM_TYPE, `${FORM_TYPE}; charset=UTF-8`, "APPLICATION/x-www-form-urlencoded"])(
    "sends a form when the caller's content-type is %s",
    (contentType) => {
      expect(sent("PATCH", { payload: '{"a":"b c","d":[1,2]}', contentType })).toEqual([contentType, "a=b+c&d=1%2C2"]);
      expect(sent("FORM", { payload: '{"a":"b c"}', contentType })).toEqual([contentType, "a=b+c"]);
    },
  );

  it.each([undefined, "application/json"])(
    "FORM sends a form, whatever the caller's content-type (%s)",
    (contentType) => {
      const payload = '{"message":"t","access_token":"PAGE_TOKEN","files":[{"content":"QQ=="}]}';
      const given = contentType === undefined ? { payload } : { payload, contentType };
      expect(sent("FORM", given)).toEqual([
        FORM_TYPE,
        "message=t&access_token=PAGE_TOKEN&files=%5B%7B%22content%22%3A%22QQ%3D%3D%22%7D%5D",
      ]);
    },
  );

  it("makes multipart bodies with one new boundary, in place of the caller's content-type", () => {
    const contentType = "multipart/form-data; boundary=theirs";
    expect(sent("MULTIFORM-PUT", { payload: '{"a":1}', contentType })).toEqual([
      "multipart/form-data; boundary=BOUNDARY1",
      '--BOUNDARY1\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--BOUNDARY1--\r\n',
    ]);
    expect(sent("MULTIPART-FORM", { payload: '{"contentPart0":{"content":{}}}', contentType })).toEqual([
      "multipart/related; boundary=BOUNDARY1",
      "--BOUNDARY1\r\nContent-Type: application/json\r\n\r\n{}\r\n--BOUNDARY1--\r\n",
    ]);
  });

  it("MULTIFORM sends several files as several parts, with or without x-payload-type", () => {
    const payload = '{"files":[{"content":"QQ==","name":"a"},{"content":"Qg==","name":"b"}]}';
    for (const payloadTypeFile of [false, true]) {
      const [, text] = sent("MULTIFORM-POST", { payload, payloadTypeFile });
      expect(text.match(/name="files"; filename="[ab]"/g)).toHaveLength(2);
    }
  });

  it("asks for a boundary only when it needs one", () => {
    const newBoundary = () => {
      throw new Error("asked");
    };
    for (const method of ["GET", "POST", "FORM", "MULTIFORM-POST"]) {
      const payload = method === "MULTIFORM-POST" ? undefined : Buffer.from('{"a":1}');
      expect(() => atOnce(bodyFromCall({ ...input(method, {}), payload, newBoundary }))).not.toThrow();
    }
  });
});

describe("bodyFromCall() one file as the body (compat C6)", () => {
  it.each(["PUT", "POST", "PATCH"])("%s sends the bytes, with or without the header", (method) => {
    for (const payloadTypeFile of [false, true]) {
      expect(sent(method, { payload: FILE, payloadTypeFile })).toEqual(["image/png", FILE_BYTES]);
      const spaced = FILE.replace(/[{:[]/g, "$&\n  ");
      expect(sent(method, { payload: spaced, payloadTypeFile })).toEqual(["image/png", FILE_BYTES]);
    }
  });

  it.each<[string, Given, string]>([
    ["the file's type", { payload: FILE, contentType: "image/gif" }, "image/png"],
    ["the caller's", { payload: '{"files":[{"content":"iVBORw"}]}', contentType: "image/gif" }, "image/gif"],
    [
      "octet-stream",
      { payload: '{"files":[{"content":"data:image/png;base64,iVBORw==","name":"p","type":""}]}' },
      "application/octet-stream",
    ],
    [
      "the file's type, sure of it",
      { payload: FILE, contentType: "application/json", payloadTypeFile: true },
      "image/png",
    ],
    [
      "the file's type, nulls aside",
      { payload: '{"x":null,"files":[{"content":"iVBORw","type":"image/png","name":null}]}', payloadTypeFile: true },
      "image/png",
    ],
  ])("has as content-type %s", (_name, given, expected) => {
    expect(sent("PUT", given)).toEqual([expected, FILE_BYTES]);
  });

  it.each<[string, string, Given]>([
    ["another member", "POST", { payload: `{"a":1,${FILE.slice(1)}` }],
    ["another member twice", "POST", { payload: `${FILE.slice(0, -1)},${FILE.slice(1)}` }],
    ["no member files", "POST", { payload: '{"file":[{"content":"QQ=="}]}' }],
    ["an object", "POST", { payload: '{"files":{"content":"QQ=="}}' }],
    ["an empty array", "POST", { payload: '{"files":[]}' }],
    ["an array of texts", "POST", { payload: '{"files":["QQ=="]}' }],
    ["no content", "POST", { payload: '{"files":[{"type":"image/png"}]}' }],
    ["a file without members", "POST", { payload: '{"files":[{}]}' }],
    ["content that is an object", "POST", { payload: '{"files":[{"content":{}}]}' }],
    ["a further member", "POST", { payload: '{"files":[{"content":"QQ==","path":"a"}]}' }],
    ["a null", "POST", { payload: '{"files":[{"content":"QQ==","type":null}]}' }],
    ["a content-type of JSON", "POST", { payload: FILE, contentType: "application/vnd.x+json; a=b" }],
    ["DELETE", "DELETE", { payload: FILE }],
    ["OPTIONS", "OPTIONS", { payload: FILE }],
  ])("is not taken for one without the header: %s", (_name, method, given) => {
    expect(sent(method, given)[1]).toBe(given.payload);
  });

  it("is not taken for one when the caller's content-type is urlencoded", () => {
    expect(sent("POST", { payload: FILE, contentType: FORM_TYPE })[1]).toMatch(/^files=%5B%7B/);
  });

  it.each<[field: string, payload: string, withoutHeader: boolean]>([
    ["payload.files[0].content", '{"files":[{"content":"not base64","type":"text/plain"}]}', true],
    ["payload.files[0].type", '{"files":[{"content":"QQ==","type":"a/b\\r\\nX-Evil: 1"}]}', true],
    ["payload.files", '{"files":[{"content":"QQ=="},{"content":"QQ=="}]}', true],
    ["payload.files", '{"files":[]}', false],
    ["payload.files", '{"files":{"content":"QQ=="}}', false],
    ["payload.files", '{"files":"QQ=="}', false],
    ["payload.files", '{"files":null,"a":1}', false],
    ["payload.files", '{"a":1}', false],
    ["payload.files", `{"a":1,${FILE.slice(1)}`, false],
    ["payload.files[0].content", '{"files":[{}]}', false],
    ["payload.files[0].content", '{"files":["QQ=="]}', false],
    ["payload.files[0].content", '{"files":[null]}', false],
    ["payload.files[0].content", '{"files":[{"content":null}]}', false],
    ["payload.files[0].content", '{"files":[{"content":["QQ=="]}]}', false],
    ["payload.files[0].name", '{"files":[{"content":"QQ==","name":1}]}', false],
    ["payload.files[0]", '{"files":[{"content":"QQ==","size":1}]}', false],
  ])("refuses, and names %s: %s", (field, payload, withoutHeader) => {
    expect(messageOf("PUT", { payload, payloadTypeFile: true })).toMatch(startOf(field));
    if (withoutHeader) expect(messageOf("PUT", { payload })).toMatch(startOf(field));
  });

  it.each(["DELETE", "OPTIONS", "FORM", "MULTIPART-FORM"])("refuses the header with %s", (method) => {
    expect(messageOf(method, { payload: FILE, payloadTypeFile: true })).toMatch(/^method .*x-payload-type/);
  });

  it.each(["POST", "MULTIFORM-POST"])("refuses the header without a payload (%s)", (method) => {
    expect(messageOf(method, { payloadTypeFile: true })).toMatch(startOf("payload.files"));
  });
});

describe("bodyFromCall() exact bytes", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s sends them as they are", (method) => {
    expect(sent(method, { body: "\u0000\u00ff{" })).toEqual(["application/octet-stream", "\u0000\u00ff{"]);
    expect(sent(method, { body: "a=1", contentType: FORM_TYPE })).toEqual([FORM_TYPE, "a=1"]);
  });

  it.each(["GET", "GETFILE"])("%s sends them too", (method) => {
    const given = { body: '{"query":{}}', contentType: "application/json" };
    expect(decide(method, given).method).toBe("GET");
    expect(sent(method, given)).toEqual(["application/json", '{"query":{}}']);
  });

  it("treats no bytes as no body", () => {
    expect(decide("GET", { body: "" }).body).toBeUndefined();
    expect(sent("POST", { body: "", payload: '{"a":1}' })).toEqual(["application/json", '{"a":1}']);
  });

  it.each<[string, Given]>([
    ["POST", { body: "x", payload: '{"a":1}' }],
    ["GET", { body: "x", payload: '{"a":1}' }],
    ["HEAD", { body: "x" }],
    ["FORM", { body: "x" }],
    ["MULTIFORM-POST", { body: "x" }],
    ["MULTIPART-FORM", { body: "x" }],
  ])("refuses them with %s and %j", (method, given) => {
    expect(messageOf(method, given)).toMatch(/^body /);
  });

  it("refuses MULTIPART-FORM without a part", () => {
    expect(messageOf("MULTIPART-FORM", {})).toMatch(/^payload /);
  });
});

function input(
  method: string,
  { payload, body, contentType, payloadTypeFile = false, explodeArrays = false }: Given,
): BodyInput {
  let boundaries = 0;
  return {
    method,
    payload: payload === undefined ? undefined : Buffer.from(payload),
    body: body === undefined ? undefined : Buffer.from(body, "latin1"),
    contentType,
    payloadTypeFile,
    explodeArrays,
    newBoundary: () => `BOUNDARY${++boundaries}`,
    memory: ROOMY,
  };
}

function decide(method: string, given: Given): DecidedBody {
  return atOnce(bodyFromCall(input(method, given)));
}

function sent(method: string, given: Given): [contentType: string | undefined, body: string] {
  const { contentType, body, query } = decide(method, given);
  expect(query).toEqual([]);
  return [contentType, Buffer.from(body ?? []).toString("latin1")];
}

function messageOf(method: string, given: Given): string {
  try {
    decide(method, given);
  } catch (error) {
    if (error instanceof RelayError && error.reason === "CALL_FORMAT_ERROR") return error.message;
    throw error;
  }
  return "nothing was refused";
}

function startOf(field: string): RegExp {
  return new RegExp(`^${field.replace(/[.[\]]/g, "\\$&")} `);
}
