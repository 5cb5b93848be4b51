// @ts-check
/** The controls above a view: each keeps its value in the address. */

import { html } from "../vendor/lit-html/lit-html.js";
import { choose } from "./route.js";

/** A box to search with. @param {string} value @param {string} placeholder what can be searched for */
export function finder(value, placeholder) {
  return html`<label
    >Find
    <input type="search" .value=${value} placeholder=${placeholder} @input=${(/** @type {Event} */ event) => {
      if (event.target instanceof HTMLInputElement) choose({ find: event.target.value });
    }}
  /></label>`;
}

/** A box for a label selector; it counts when it is left. @param {string} value */
export function labelBox(value) {
  return html`<label
    >Label
    <input .value=${value} placeholder="app=web" @change=${(/** @type {Event} */ event) => {
      if (event.target instanceof HTMLInputElement) choose({ label: event.target.value.trim() });
    }}
  /></label>`;
}

/**
 * A list to choose from.
 * @param {string} name of the choice in the address
 * @param {string} label
 * @param {string} value
 * @param {string[]} options
 * @param {string} [none] the option that takes the choice out of the address
 */
export function select(name, label, value, options, none = "") {
  return html`<label
    >${label}
    <select @change=${(/** @type {Event} */ event) => {
      if (event.target instanceof HTMLSelectElement) {
        choose({ [name]: event.target.value === none ? "" : event.target.value });
      }
    }}>
      ${options.map((each) => html`<option value=${each} ?selected=${each === value}>${each}</option>`)}
    </select>
  </label>`;
}
