// @ts-check
/** A table that scrolls sideways where it is too wide. */

import { html } from "../vendor/lit-html/lit-html.js";

/** The columns of numbers. */
const FIGURES = new Set(["Pods", "On nodes", "Waiting", "Takes cpu", "Takes memory"]);

/** @param {string} caption @param {string[]} heads @param {unknown[]} body */
export function table(caption, heads, body) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${heads.map((each) => html`<th scope="col" class=${FIGURES.has(each) ? "figure" : ""}>${each}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${body}
      </tbody>
    </table>
  </div>`;
}
