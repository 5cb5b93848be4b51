// @ts-check
/** Pod groups of which not every member is bound, and the quotas of namespaces. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { asked } from "./asked.js";
import { bar } from "./bar.js";
import { groupLink } from "./format.js";
import { objectPanel } from "./objects.js";
import { parts } from "./route.js";
import { store } from "./store.js";

export function groupsView() {
  const [, namespace, name] = parts();
  return html`${name ? objectPanel("podgroup", namespace, name) : nothing} ${groups()} ${quotas()}`;
}

function quotas() {
  const told = asked("/moorage/v1/quotas");
  if (told.trouble) return html`<h2>Quotas</h2><p class="quiet">${told.trouble}</p>`;
  if (!told.body) return html`<p class="quiet busy" role="status">Asking for the quotas ...</p>`;
  /** @type {import("./types.js").Quota[]} */
  const found = told.body.quotas;
  if (!found.length) return html`<h2>Quotas</h2><p class="empty">No namespace has a quota.</p>`;
  return html`<h2>Quotas</h2>
    <p class="quiet">What the pods of a namespace may take together</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Quotas">
      <table class="quotas" aria-label="Quotas">
        <thead>
          <tr>${["Quota", "Resource", "Used", "Most", "Guaranteed"].map((each) => html`<th scope="col">${each}</th>`)}</tr>
        </thead>
        <tbody>
          ${found.flatMap((quota) =>
            quota.amounts.map(
              (each, index) => html`<tr>
                <th scope="row">
                  ${index ? html`<span class="hidden">${quota.namespace}/${quota.name}</span>` : html`${quota.namespace}/${quota.name} <span class="kind">${quota.kind}</span>`}
                </th>
                <td>${each.resource}</td>
                <td>${each.part === null ? nothing : bar(each.part, 1)} ${each.used || "-"}</td>
                <td>${each.most || "-"}</td>
                <td>${each.guaranteed || "-"}</td>
              </tr>`,
            ),
          )}
        </tbody>
      </table>
    </div>`;
}

function groups() {
  if (!store.groups.length) {
    return html`<p class="empty">Every pod group is complete, or there is none.</p>`;
  }
  return html`<p class="quiet">Groups of which not every member is bound</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Groups">
    <table aria-label="Groups">
      <thead>
        <tr>
          ${["Group", "Placed", "Needs", "Members", "At Permit", "Gated", "Lacks"].map(
            (each, index) => html`<th scope="col" class=${index > 1 && index < 6 ? "figure" : ""}>${each}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${store.groups.map(
          (each) => html`<tr>
            <th scope="row"><a href=${groupLink(`${each.namespace}/${each.name}`)}>${each.namespace}/${each.name}</a></th>
            <td>${bar(each.placed, each.members)} ${each.placed}</td>
            <td class="figure">${each.minimum ?? "?"}</td>
            <td class="figure">${each.members}</td>
            <td class="figure">${each.atPermit}</td>
            <td class="figure">${each.gated}</td>
            <td class="reason">${each.message}${each.waiting ? html` <a href=${groupLink(`${each.namespace}/${each.name}`)}>what would help</a>` : nothing}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
