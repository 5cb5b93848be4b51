// @ts-check
/**
 * The JSON that the page reads, as `/moorage/v1/openapi.json` describes it.
 *
 * @typedef {Record<string, Record<string, number>>} Devices thousandths of devices, by pool and index
 * @typedef {{namespace: string, name: string, uid: string, priority?: number, owner?: string,
 *   group?: string, requests?: Record<string, number>, devices?: Devices}} FillingPod
 * @typedef {{allocatable: Record<string, number>, domains?: Record<string, string>,
 *   unschedulable?: boolean, taints?: string[], pods?: FillingPod[],
 *   others?: {pods: number, requests: Record<string, number>, devices?: Devices} | null}} Node
 * @typedef {{plugin: string, events: string[]}} Waking
 * @typedef {{queue: string, namespace: string, name: string, uid: string, priority?: number,
 *   attempts?: number, since?: string, position?: number, until?: string, plugins?: string[],
 *   message?: string, wokenBy?: Waking[], node?: string, group?: string, step?: string,
 *   moved?: boolean, owner?: string, reason?: string}} WaitingPod
 * @typedef {{namespace: string, name: string, source: string, minimum: number | null,
 *   succeeded: number, members: number, placed: number, waiting: number, gated: number, atPermit: number,
 *   message: string, reason: string}} Group
 * @typedef {{type?: string, namespace?: string, name?: string, selector?: string, allNamespaces?: boolean}} ObjectQuery
 * @typedef {{stage: string, pods: number, cause: string, plugins: string[], example: string}} PodCount
 * @typedef {{kind: string, text: string, helps: number, tried: number, of: number, command: string}} ObjectSuggestion
 * @typedef {{sentence: string, counts: PodCount[], suggestions: ObjectSuggestion[], notes: string[]}} ObjectExplanation
 * @typedef {{name: string, seconds: number}} Step
 * @typedef {{number: number, namespace: string, name: string, uid: string, schedulerName: string,
 *   owner?: string, group?: string, reason?: string, attempt: number, time: string, seconds: number, outcome: string, node?: string,
 *   feasible?: number, evaluated?: number, message?: string, victims?: number, steps?: Step[],
 *   end?: string}} Decision
 * @typedef {{title: string, rights: string, watches: boolean, version: string, csrf: string, acts: string[]}} About
 * @typedef {{version?: number, whole?: boolean, time?: string, scheduling?: boolean,
 *   nodes?: Record<string, Node>, gone?: string[], sizes?: Record<string, number>,
 *   pods?: Record<string, WaitingPod>, left?: string[], groups?: Group[],
 *   decisions?: Decision[], trouble?: string}} Shown
 * @typedef {{plugins: string[], reasons: string[], fact: string, nodes: number}} Cause
 * @typedef {{kind: string, text: string, nodes: number, node: string, patch: object[],
 *   delete: string, alsoDelete: string[], create: object[], evicted: string[], changes: object[], command: string}} Suggestion
 * @typedef {{node: string, rejections: Record<string, string[]>, score: number | null,
 *   scores: Record<string, number>}} NodeAnswer
 * @typedef {{namespace: string, name: string, where: string, sentence: string, causes: Cause[],
 *   waysOut: Suggestion[], notes: string[], nodeCount: number, feasible: number,
 *   nodes: NodeAnswer[]}} Explanation
 * @typedef {{attempt: number, time: string, seconds: number, outcome: string, node: string,
 *   feasible: number, evaluated: number, message: string, end: string, victims: string[],
 *   before: {time: string, what: string, cause: string}[], steps: Step[]}} Attempt
 * @typedef {{type: string, reason: string, message: string, source: string, count: number,
 *   last: string}} ReportedEvent
 * @typedef {{resource: string, used: string, most: string, guaranteed: string,
 *   part: number | null}} QuotaAmount
 * @typedef {{kind: string, namespace: string, name: string, amounts: QuotaAmount[]}} Quota
 * @typedef {{namespace?: string, owner?: string, group?: string, reason?: string, pods?: number,
 *   names?: string[], queues?: Record<string, number>, oldest?: string, priority?: number, message?: string}} Fold
 * @typedef {{time: string, active: number, backoff: number, unschedulable: number, gated: number,
 *   bound: number, failed: number, evicted: number, nodes: number,
 *   fills: Record<string, {requested: number, allocatable: number}>}} Moment
 */
export {};
