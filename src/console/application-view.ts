import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import {
  APPLICATION_FIELDS,
  applicationFromValues,
  privateKeyView,
  valuesFromApplication,
} from "./application-form.js";
import { applicationLink } from "./directory.js";
import { changeMask, createForm, type Form, notice } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { addressOf, numberFrom, visibleText } from "./text.js";
import { answerView, moment, stateMark, type View, type ViewContext } from "./view.js";

/** Settings and actions of one application. */
export function createApplicationView(context: ViewContext): View {
  const { api, directory, update } = context;
  const found = createLoader<ApplicationJson>(update);
  let publicKey = "";

  function load(): void {
    void found.load(() => api.call("ApplicationService/GetApplication", { publicKey }));
  }

  /** Reloads after a change that answers with something else, since the etag and the state have changed. */
  function done(text: unknown): TemplateResult {
    load();
    return notice(text);
  }

  const forms = {
    settings: createForm(context, {
      ...{ id: "settings", method: "ApplicationService/UpdateApplication", button: "Save" },
      fields: () => APPLICATION_FIELDS,
      stored: () => (found.value === undefined ? {} : valuesFromApplication(found.value)),
      requestFrom: (values, stored) => ({
        application: { ...applicationFromValues(values), publicKey, etag: stored["etag"] ?? "" },
        updateMask: changeMask(values, stored, []),
      }),
      done: (application) => {
        void found.load(async () => application);
        directory.note([application]);
        return notice("Saved.");
      },
    }),
    state: createForm(context, {
      ...{ id: "state", method: "ApplicationService/UpdateApplication" },
      button: () => (isDisabled() ? "Enable the application" : "Disable the application"),
      requestFrom: () => ({
        application: { publicKey, state: isDisabled() ? "STATE_ACTIVE" : "STATE_DISABLED" },
        updateMask: "state",
      }),
      done: (application) => {
        void found.load(async () => application);
        const isOff = application.state === "STATE_DISABLED";
        return notice(isOff ? "Disabled: its calls are refused." : "Enabled: its calls are accepted.");
      },
    }),
    capture: createForm(context, {
      ...{ id: "capture", method: "CallRecordService/StartCallCapture", button: "Capture calls" },
      fields: () => [{ name: "minutes", label: "Minutes", kind: "number", path: "duration", hint: "From 1 to 60." }],
      requestFrom: ({ minutes }) => ({ publicKey, duration: `${numberFrom(minutes, "duration") * 60}s` }),
      done: ({ endTime }) => done(html`Capturing has started. It ends ${moment(endTime, "")}.`),
    }),
    stop: createForm(context, {
      ...{ id: "stop", method: "CallRecordService/StopCallCapture", button: "Stop capturing" },
      requestFrom: () => ({ publicKey }),
      done: () => done("Capturing has stopped. Captures are kept for a day."),
    }),
    rotate: createForm(context, {
      ...{ id: "rotate", method: "ApplicationService/RotateApplicationKey", button: "Rotate the private key" },
      sure: "The old key will stop working",
      requestFrom: () => ({ publicKey }),
      done: ({ privateKey = "" }) => {
        load();
        return privateKeyView("new-private-key", privateKey);
      },
    }),
    remove: createForm(context, {
      ...{ id: "remove", method: "ApplicationService/DeleteApplication", button: "Delete the application" },
      ...{ sure: "Delete it with its clients and connections, for good", isLast: true },
      requestFrom: () => ({ publicKey }),
      done: () => notice("Deleted the application, its clients, its connections and its webhook."),
    }),
  } as const;

  const isDisabled = () => found.value?.state === "STATE_DISABLED";

  return {
    title: "Application",
    enter(parameters) {
      publicKey = parameters.get("publicKey") ?? "";
      forms.capture.fill({ minutes: "10" });
      load();
    },
    leave() {
      for (const each of [found, ...Object.values(forms)]) each.clear();
    },
    render: () => html`<h1 tabindex="-1">Application</h1>
      ${applicationLinks(context, publicKey, "application")}
      ${forms.remove.isOver ? forms.remove.render() : answerView(found, (application) => partsOf(application, forms))}`,
  };
}

type Forms = Readonly<Record<"settings" | "state" | "capture" | "stop" | "rotate" | "remove", Form>>;

function partsOf(application: ApplicationJson, forms: Forms): TemplateResult {
  const { displayName = "", publicKey = "", state, captureEndTime } = application;
  const isCapturing = captureEndTime !== undefined && Date.parse(captureEndTime) > Date.now();
  return html`<p>
      <strong><bdi>${visibleText(displayName)}</bdi></strong> <span class="id">${visibleText(publicKey)}</span>
      ${state === "STATE_DISABLED" ? stateMark(false, "Disabled") : stateMark(true, "Active")}
    </p>
    ${part("Settings", nothing, forms.settings)}
    ${part("Calls on or off", "All calls of a disabled application are refused; its data is kept.", forms.state)}
    ${part(
      "Capture",
      html`Keeps the headers and bodies of up to 100 calls for a day, sealed and with tokens removed; each call's record
        shows them. ${isCapturing ? html`It is on and ends ${moment(captureEndTime, "")}.` : "It is off."}`,
      forms.capture,
      isCapturing ? forms.stop : undefined,
    )}
    ${part(
      "Private key",
      "A new key invalidates the old one, its user signatures and call tokens, and open connect links.",
      forms.rotate,
    )}
    ${part("Delete", "This cannot be undone; disabling can.", forms.remove)}`;
}

/** A section with a heading, a hint, and forms. */
export function part(heading: string, about: unknown, ...forms: ReadonlyArray<Form | undefined>): TemplateResult {
  return html`<section class="part">
    <h2>${heading}</h2>
    ${about === nothing ? nothing : html`<p class="hint">${about}</p>`} ${forms.map((form) => form?.render() ?? nothing)}
  </section>`;
}

/** Views of one application: name in the address, and label. */
const PARTS = [
  ["application", "Settings"],
  ["clients", "OAuth clients"],
  ["webhook", "Webhook"],
  ["token", "Call tokens"],
  ["link", "Connect link"],
  ["connection", "Store a connection"],
  ["connections", "All connections"],
  ["audit", "Its audit trail"],
] as const;

/** Views that do not show their application themselves. */
const SAY_WHOSE = ["clients", "webhook", "token", "link"];

/** Links between the views of one application, and its name where the view does not show it. */
export function applicationLinks(
  { directory }: Pick<ViewContext, "directory">,
  publicKey: string,
  current: string,
): TemplateResult {
  return html`${SAY_WHOSE.includes(current) ? html`<p>Application: ${applicationLink(directory, publicKey)}</p>` : nothing}
  <nav class="parts" aria-label="The application's views">
    <ul>
      ${PARTS.map(
        ([view, label]) =>
          html`<li>
            <a href=${addressOf(view, { publicKey })} aria-current=${view === current ? "page" : "false"}>${label}</a>
          </li>`,
      )}
    </ul>
  </nav>`;
}
