// @ts-check
/** The time of a sandbox: how fast it runs; stop it, step it. */

import { html } from "../vendor/lit-html/lit-html.js";
import { clock } from "./format.js";
import { redraw } from "./redraw.js";
import { can, perform, said, store } from "./store.js";

/** @type {{now?: string, speed?: number} | null} */
let state = null;
let trouble = "";
let looked = -Infinity;

export function timeView() {
  if (!can("time")) {
    return html`<p class="sum">The scheduler's time is <time>${clock(store.time)}</time>.</p>
      <p class="empty">Only the time of a sandbox that was started with --speed can be stopped and stepped.</p>`;
  }
  if (performance.now() - looked > 1000) change({});
  return html`
    <p class="sum">
      ${state ? html`<time>${clock(state.now ?? "")}</time>, ${state.speed ? pace(state.speed) : "stopped"}` : ""}
    </p>
    ${trouble ? html`<p class="empty" role="status">Not possible: ${trouble}</p>` : ""}
    <div class="choices" ?hidden=${!state}>
      <button @click=${() => change({ speed: 0 })}>Stop</button>
      <button @click=${() => change({ speed: 1 })}>As usual</button>
      <button @click=${() => change({ speed: 10 })}>Ten times as fast</button>
      <button @click=${() => change({ speed: 20, step: 10 })}>Step 10 s</button>
      <button @click=${() => change({ speed: 20, step: 60 })}>Step 1 min</button>
    </div>
  `;
}

/** How fast the time runs, in words. @param {number} speed */
function pace(speed) {
  return speed === 1 ? "one second passes in one" : `${speed} seconds pass in one`;
}

/** @param {{speed?: number, step?: number}} wanted */
async function change(wanted) {
  looked = performance.now();
  try {
    state = await perform("time", wanted);
    trouble = "";
  } catch (error) {
    trouble = said(error);
  }
  redraw();
}
