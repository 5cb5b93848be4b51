// @ts-check
/** The few changes that the page of a sandbox offers; nothing anywhere else. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { redraw } from "./redraw.js";
import { can, perform, said } from "./store.js";

/** @type {Map<string, {text: string, failed: boolean, busy: boolean}>} what came of each act */
const outcomes = new Map();

/** Does something and remembers what came of it. @param {string} act @param {object} body */
export async function act(act, body) {
  outcomes.set(act, { text: "", failed: false, busy: true });
  redraw();
  try {
    await perform(act, body);
    outcomes.set(act, { text: "done", failed: false, busy: false });
  } catch (error) {
    outcomes.set(act, { text: said(error), failed: true, busy: false });
  }
  redraw();
}

/** What came of an act, for people. @param {string} act */
export function outcome(act) {
  const found = outcomes.get(act);
  return html`<span class=${found?.failed ? "failed" : "quiet"} role="status">${found?.text ?? ""}</span>`;
}

/**
 * The form of an act; nothing where the page cannot do it.
 * @param {string} name
 * @param {any} [given]
 */
export function acting(name, given) {
  if (!can(name)) return nothing;
  const busy = outcomes.get(name)?.busy ?? false;
  if (name === "cordon") {
    return html`<p>
      <button ?disabled=${busy} @click=${() => act(name, given)}>${given.on ? "Cordon" : "Uncordon"}</button>
      ${outcome(name)}
    </p>`;
  }
  const pods = name === "create-pods";
  return html`<form class="act" aria-label=${pods ? "Create pods" : "Add nodes"} @submit=${submit}>
    <label>${pods ? "Pods" : "Nodes"} <input name="count" type="number" min="1" max="500" value=${pods ? 10 : 1} required /></label>
    ${
      pods
        ? html`<label>cpu of each <input name="cpu" value="500m" size="6" required /></label>
            <label>memory of each <input name="memory" value="256Mi" size="6" required /></label>`
        : nothing
    }
    <button name="do" value=${name} ?disabled=${busy}>${pods ? "Create pods" : "Add nodes"}</button>
    ${outcome(name)}
  </form>`;
}

/** @param {SubmitEvent} event */
function submit(event) {
  event.preventDefault();
  if (!(event.target instanceof HTMLFormElement)) return;
  const given = Object.fromEntries(new FormData(event.target));
  const name = event.submitter?.getAttribute("value") ?? "";
  act(name, { ...given, count: Number(given.count) });
}
