// @ts-check
/** The cluster: every node as a tile, one of them in full. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { acting } from "./acting.js";
import { bar } from "./bar.js";
import { colours, KEYS } from "./colours.js";
import { select } from "./controls.js";
import { devices } from "./devices.js";
import { amount, amountOf, count, nodeLink, percent, podLink } from "./format.js";
import { choice, choose } from "./route.js";
import { can, store } from "./store.js";
import { byNumber, layout, paint, requested, stranded } from "./tiles.js";

/** @typedef {import("./types.js").Node} Node */

const BASIC = ["cpu", "memory", "pods"];
const ROWS = 200;
// The browser's own clock tells by this mark how long the first picture took.
const FIRST = "first picture";
const EVERY = "every node";
const ZONE = "topology.kubernetes.io/zone";

/** @type {import("./tiles.js").Layout | null} */
let made = null;

export function clusterView() {
  if (!store.nodes.size) {
    return html`<p class="empty">
      The scheduler sees no node. ${can("add-nodes") ? "Add some below." : "Nodes are shown here as soon as they register with the API server."}
    </p>
    ${acting("add-nodes")}`;
  }
  const how = {
    resource: choice("resource", "cpu"),
    by: choice("by", "namespace"),
    domain: choice("domain", ZONE),
    within: choice("within", ""),
    chosen: choice("node", ""),
    size: choice("size", "equal"),
    table: choice("as", "tiles") === "table",
  };
  // Another key has other domains.
  if (!valuesOf(how.domain).includes(how.within)) how.within = "";
  const nodes = within(how.domain, how.within);
  const colour = colours(nodes.values(), how.by);
  return html`
    <div class="choices">
      ${select("resource", "Filled with", how.resource, resources())}
      ${select("by", "Coloured by", how.by, Object.keys(KEYS))}
      ${select("domain", "Framed by", how.domain, ["none", ...domains()])}
      ${how.domain === "none" ? nothing : select("within", "Only", how.within || EVERY, [EVERY, ...valuesOf(how.domain)], EVERY)}
      ${select("size", "Sized", how.size, ["equal", "by capacity"])}
      ${select("as", "Shown as", how.table ? "table" : "tiles", ["tiles", "table"])}
    </div>
    ${totals(nodes, how.resource)}
    <ul class="legend" aria-label="Colours">
      ${colour.legend.map(
        (each) => html`<li>
          <svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" fill=${each.colour}></rect></svg>
          ${each.key} <span class="quiet">${each.pods}</span>
        </li>`,
      )}
      <li><span class="hatched" aria-hidden="true"></span> stranded: another resource is used up</li>
      ${
        [...nodes.values()].some((node) => !node.allocatable[how.resource])
          ? html`<li><span class="lacking" aria-hidden="true"></span> a node without ${how.resource}</li>`
          : nothing
      }
    </ul>
    <p class="hidden" role="status">${how.chosen ? `${how.chosen} is chosen; its amounts and pods follow` : nothing}</p>
    <div class=${how.chosen ? "split" : ""}>
      ${how.table ? table(nodes, how.resource) : tiles(nodes, how, colour.of)} ${detail(how.chosen)}
    </div>
    ${acting("create-pods")} ${acting("add-nodes")}
  `;
}

function resources() {
  /** @type {Set<string>} */
  const found = new Set();
  for (const node of store.nodes.values()) {
    for (const name of Object.keys(node.allocatable)) found.add(name);
  }
  return [...BASIC, ...[...found].filter((each) => !BASIC.includes(each)).sort()];
}

function domains() {
  /** @type {Set<string>} */
  const found = new Set([ZONE]);
  for (const node of store.nodes.values()) {
    for (const key of Object.keys(node.domains ?? {})) found.add(key);
  }
  return [...found].sort();
}

/** The nodes of one domain; all for "". @param {string} key @param {string} value @returns {Map<string, Node>} */
function within(key, value) {
  if (!value) return store.nodes;
  return new Map([...store.nodes].filter(([, node]) => node.domains?.[key] === value));
}

/** The domains of a label's key. @param {string} key */
function valuesOf(key) {
  const values = [...store.nodes.values()].map((node) => node.domains?.[key] ?? "");
  return [...new Set(values)].filter(Boolean).sort(byNumber);
}

/** @param {Map<string, Node>} nodes @param {string} resource */
function totals(nodes, resource) {
  let all = 0;
  let used = 0;
  let lost = 0;
  for (const node of nodes.values()) {
    const offered = node.allocatable[resource] ?? 0;
    const taken = requested(node, resource);
    all += offered;
    used += taken;
    if (taken < offered && stranded(node, resource)) lost += offered - taken;
  }
  return html`<p class="sum">
    <strong>${percent(used, all)}</strong> of ${resource} requested:
    ${amountOf(resource, used, all)} on ${count(nodes.size, "node")}${
      lost ? html`; ${amount(resource, lost)} is left where another resource is gone` : nothing
    }
  </p>`;
}

/**
 * @param {Map<string, Node>} nodes
 * @param {{resource: string, by: string, domain: string, size: string, chosen: string}} how
 * @param {(pod: import("./types.js").FillingPod) => string} colourOf
 */
function tiles(nodes, how, colourOf) {
  requestAnimationFrame(() => {
    const canvas = document.getElementById("tiles");
    if (!(canvas instanceof HTMLCanvasElement)) return;
    const domain = how.domain === "none" ? "" : how.domain;
    const sized = how.size === "equal" ? "" : how.resource;
    made = layout(nodes, { domain, sized, width: canvas.clientWidth });
    canvas.style.height = `${made.height}px`;
    paint(canvas, made, { resource: how.resource, colourOf, chosen: how.chosen });
    canvas.dataset.painted = String(made.tiles.length);
    if (!performance.getEntriesByName(FIRST).length) performance.mark(FIRST);
  });
  return html`<div class="tiles">
    <canvas
      id="tiles"
      role="img"
      tabindex="0"
      aria-label="${count(nodes.size, "node")}, filled with ${how.resource}, coloured by ${how.by}. The arrow keys go from node to node; the same can be shown as a table."
      @click=${pick}
      @keydown=${step}
    ></canvas>
  </div>`;
}

/** @param {MouseEvent} event */
function pick(event) {
  const found = made?.tiles.find(
    (tile) =>
      event.offsetX >= tile.x &&
      event.offsetX < tile.x + tile.width &&
      event.offsetY >= tile.y &&
      event.offsetY < tile.y + tile.height,
  );
  choose({ node: found?.name ?? "" });
}

/** Goes to another node by the arrow keys. @param {KeyboardEvent} event */
function step(event) {
  const all = made?.tiles ?? [];
  const at = all.findIndex((tile) => tile.name === choice("node", ""));
  const row = at < 0 ? 1 : all.filter((tile) => tile.y === all[at].y).length;
  /** @type {Record<string, number>} */
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row };
  if (event.key === "Escape") choose({ node: "" });
  if (!(event.key in moves) || !all.length) return;
  event.preventDefault();
  const next = at < 0 ? 0 : Math.min(Math.max(at + moves[event.key], 0), all.length - 1);
  choose({ node: all[next].name });
  if (event.target instanceof HTMLElement) keepInSight(event.target, all[next]);
}

/** Scrolls to a tile that is out of sight. @param {HTMLElement} canvas @param {import("./tiles.js").Tile} tile */
function keepInSight(canvas, tile) {
  const top = canvas.getBoundingClientRect().top + tile.y;
  // On a phone the chosen node's sheet covers the lower half.
  const seen = matchMedia("(max-width: 700px)").matches ? innerHeight / 2 : innerHeight;
  if (top < 0 || top + tile.height > seen) scrollBy({ top: top - seen / 2 });
}

/** @param {Map<string, Node>} nodes @param {string} resource */
function table(nodes, resource) {
  const names = [...nodes.keys()].sort(byNumber);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Nodes">
    <table>
      <caption>
        ${names.length > ROWS ? `The first ${ROWS} of ${names.length} nodes` : count(names.length, "node")}
      </caption>
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">${resource}</th>
          <th scope="col" class="figure">Pods</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        ${names.slice(0, ROWS).map((name) => {
          const node = nodes.get(name);
          if (!node) return nothing;
          const used = requested(node, resource);
          const all = node.allocatable[resource] ?? 0;
          return html`<tr>
            <th scope="row"><a href=${nodeLink(name)}>${name}</a></th>
            <td>${all ? html`${bar(used, all)} ${amountOf(resource, used, all)}` : "none"}</td>
            <td class="figure">${node.pods?.length ?? 0}</td>
            <td>${stateOf(node)}</td>
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}

/** @param {Node} node */
function stateOf(node) {
  const words = [node.unschedulable ? "cordoned" : "", ...(node.taints ?? [])].filter(Boolean);
  return words.join(", ") || "open";
}

/** @param {string} name */
function detail(name) {
  if (!name) return nothing;
  const node = store.nodes.get(name);
  const close = html`<button class="plain" aria-label="Close the node" @click=${() => choose({ node: "" })}>
    ✕
  </button>`;
  if (!node) return html`<aside class="detail" aria-label="Node">${close}<p>The node ${name} is gone.</p></aside>`;
  const pods = node.pods ?? [];
  const offered = Object.keys(node.allocatable).filter((each) => node.allocatable[each]);
  return html`<aside class="detail" aria-label="Node">
    ${close}
    <h2>${name}</h2>
    <p class="quiet">
      ${stateOf(node)}${Object.entries(node.domains ?? {}).map(
        ([key, value]) => html`, ${key.split("/").pop()} ${value}`,
      )}
    </p>
    <dl class="amounts">
      ${offered.map(
        (each) => html`<dt>${each}</dt>
          <dd>
            <span class="of">${amountOf(each, requested(node, each), node.allocatable[each])}</span>
            ${bar(requested(node, each), node.allocatable[each])}
          </dd>`,
      )}
    </dl>
    ${devices(node)} ${acting("cordon", { node: name, on: !node.unschedulable })}
    <h3>${count(pods.length, "pod")}</h3>
    <ul class="pods on-node">
      ${pods.slice(0, ROWS).map(
        (pod) => html`<li>
          <a href=${podLink(pod)}>${pod.namespace}/${pod.name}</a>
          <span class="quiet">${amount("cpu", pod.requests?.cpu ?? 0)}, ${amount("memory", pod.requests?.memory ?? 0)}</span>
        </li>`,
      )}
      ${node.others ? html`<li>${count(node.others.pods, "pod")} of other namespaces</li>` : nothing}
    </ul>
  </aside>`;
}
