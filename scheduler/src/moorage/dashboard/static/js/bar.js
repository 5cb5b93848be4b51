// @ts-check
import { html } from "../vendor/lit-html/lit-html.js";

/** A bar of how full something is. @param {number} used @param {number} all */
export function bar(used, all) {
  const part = all ? Math.min(1, used / all) : 0;
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class="all" width="100" height="8"></rect>
    <rect class="used" width=${100 * part} height="8"></rect>
  </svg>`;
}
