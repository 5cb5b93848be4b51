// @ts-check
/** Pod groups of which not every member is bound. */

import { html } from "../vendor/lit-html/lit-html.js";
import { bar } from "./cluster.js";
import { store } from "./store.js";

export function groupsView() {
  if (!store.groups.length) {
    return html`<p class="empty">Every pod group is complete, or there is none.</p>`;
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Groups">
    <table>
      <caption>
        Groups of which not every member is bound
      </caption>
      <thead>
        <tr>
          ${["Group", "Placed", "Needs", "Members", "At Permit", "Gated", "Lacks"].map(
            (each) => html`<th scope="col">${each}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${store.groups.map(
          (each) => html`<tr>
            <th scope="row">${each.namespace}/${each.name}</th>
            <td>${bar(each.placed, each.members)} ${each.placed}</td>
            <td>${each.minimum ?? "?"}</td>
            <td>${each.members}</td>
            <td>${each.atPermit}</td>
            <td>${each.gated}</td>
            <td>${each.message}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
