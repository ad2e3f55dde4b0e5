import { stringify } from 'yaml';
import { isJsonObject, type JsonObject } from '../../protocol/json.ts';
import type { FoldMappingInput } from './fold-mapping.ts';
import { misfits } from './folded-tools.ts';
import { FOLD_PRESETS, type FoldPresetName } from './presets.ts';
import { descriptionOf, nameOf, propertiesOf } from './tool-schema.ts';

/** A family that a server seems to have. Names are no proof, so a person reads it before it is used. */
export interface FoldProposal {
	/** A preset, or a mapping that was made from names. */
	readonly fold: FoldPresetName | FoldMappingInput;
	/** What to look at before it is used. */
	readonly doubts: readonly string[];
}

/** Verbs that start something which goes on, and those that may as well make something that is there at once. */
const LASTING = words('start submit trigger launch begin enqueue');
const START = new Set([...LASTING, ...words('create run generate execute schedule call')]);
const CHECK = words('get check describe query poll wait read');
const CANCEL = words('cancel stop abort kill terminate');
/** Words that make a tool one that looks at something that goes on. */
const STATUS = words('status state progress check poll wait');
const FILLER = words('the a an of for async job task run details by id tool');

/** The families that a list of tools seems to hold. */
export function proposeFolds(tools: readonly JsonObject[]): readonly FoldProposal[] {
	const known = (Object.keys(FOLD_PRESETS) as FoldPresetName[]).filter((name) =>
		FOLD_PRESETS[name].mappings.every((mapping) => misfits(mapping, tools).length === 0),
	);
	const taken = new Set(known.flatMap((name) => FOLD_PRESETS[name].mappings.map(({ start }) => start.tool)));
	const guesses = tools.flatMap((tool) => {
		const proposal = taken.has(nameOf(tool)) ? undefined : familyOf(tool, tools);
		return proposal ? [proposal] : [];
	});
	return [...known.map((name): FoldProposal => ({ fold: name, doubts: [] })), ...guesses];
}

/** Proposals as YAML for one upstream of a configuration, with their doubts as comments. */
export function proposalText(proposals: readonly FoldProposal[]): string {
	const entries = proposals.map(({ fold, doubts }) => {
		const comments = doubts.map((doubt) => `# ${doubt}\n`).join('');
		return (comments + stringify([fold], { lineWidth: 0, aliasDuplicateObjects: false })).replace(
			/^(?=.)/gm,
			'  ',
		);
	});
	return `fold:\n${entries.join('')}`;
}

function familyOf(start: JsonObject, tools: readonly JsonObject[]): FoldProposal | undefined {
	const verb = verbOf(start, START);
	if (verb === undefined) return undefined;
	// What is made at once is read with "get" as well; only what is looked at for its status goes on.
	const isLooked = (tool: JsonObject): boolean =>
		LASTING.has(verb) || partsOf(nameOf(tool)).some((part) => STATUS.has(part));
	const checks = ranked(
		start,
		tools.filter((tool) => tool !== start && isCheck(tool) && isLooked(tool)),
	);
	const [check, ...others] = checks;
	if (!check) return undefined;
	const argument = handleOf(check);
	if (argument === undefined) return undefined;
	const cancels = tools.filter(
		(tool) => verbOf(tool, CANCEL) !== undefined && propertiesOf(tool)?.[argument] !== undefined,
	);
	const [cancel] = ranked(start, cancels);
	const place = placeOf(start, argument);
	const status = statusPath(check);
	const pollMs = pollMsIn(`${descriptionOf(check)} ${descriptionOf(start)}`);
	const template = { [argument]: `{${argument}}` };
	const isReadOnly = isJsonObject(check['annotations']) && check['annotations']['readOnlyHint'] === true;
	return {
		fold: {
			start: { tool: nameOf(start) },
			ids: { [argument]: place.path },
			check: { tool: nameOf(check), arguments: template },
			...(status !== 'status' && { status: { paths: status } }),
			...(cancel && { cancel: { tool: nameOf(cancel), arguments: template } }),
			...(pollMs !== undefined && { pollMs }),
		},
		doubts: [
			...(place.isKnown
				? []
				: [`Where ${nameOf(start)} says ${argument} is a guess: call it once and look.`]),
			...(isReadOnly ? [] : [`Say readOnly: true under check if ${nameOf(check)} changes nothing.`]),
			...(others.length === 0 ? [] : [`The check may be ${others.map(nameOf).join(' or ')} instead.`]),
		],
	};
}

/** Whether a tool looks at something that it is given a handle of. */
function isCheck(tool: JsonObject): boolean {
	const isNamed = verbOf(tool, CHECK) !== undefined || partsOf(nameOf(tool)).some((part) => STATUS.has(part));
	return isNamed && verbOf(tool, START) === undefined && handleOf(tool) !== undefined;
}

/** The verb of a tool, which is its first or its last word. */
function verbOf(tool: JsonObject, verbs: ReadonlySet<string>): string | undefined {
	const parts = partsOf(nameOf(tool));
	const others = [START, CHECK, CANCEL].filter((set) => set !== verbs);
	const [first = ''] = parts;
	const last = parts.at(-1) ?? '';
	if (verbs.has(first)) return first;
	return verbs.has(last) && !others.some((set) => set.has(first)) ? last : undefined;
}

/** Tools that are about the same thing as another, those that say most about it first. */
function ranked(start: JsonObject, tools: readonly JsonObject[]): readonly JsonObject[] {
	const about = subjectOf(nameOf(start));
	const score = (tool: JsonObject): number => {
		const parts = subjectOf(nameOf(tool));
		const shared = parts.filter((part) => about.includes(part)).length;
		const isNamed =
			descriptionOf(start).includes(nameOf(tool)) || descriptionOf(tool).includes(nameOf(start));
		// Words that the other does not have are against it.
		return shared * 2 - (parts.length - shared) * 0.5 + (isNamed ? 3 : 0) + (about.length === 0 ? 0.5 : 0);
	};
	const scored = tools.map((tool) => ({ tool, points: score(tool) })).filter(({ points }) => points >= 1);
	return scored.sort((a, b) => b.points - a.points).map(({ tool }) => tool);
}

/** The argument that is a handle: one of few, and needed. */
function handleOf(tool: JsonObject): string | undefined {
	const names = Object.keys(propertiesOf(tool) ?? {});
	const schema = tool['inputSchema'];
	const required =
		isJsonObject(schema) && Array.isArray(schema['required']) && schema['required'].length > 0
			? schema['required'].map(String)
			: names;
	const named = required.find((name) =>
		/(^|_)(id|token|handle|number|pid)$|[a-z](Id|Token|Handle|Number)$/.test(name),
	);
	return named ?? (required.length === 1 && names.length === 1 ? required[0] : undefined);
}

function placeOf(
	start: JsonObject,
	argument: string,
): { readonly path: string | string[]; readonly isKnown: boolean } {
	const schema = start['outputSchema'];
	const properties = isJsonObject(schema) && isJsonObject(schema['properties']) ? schema['properties'] : {};
	const same = Object.keys(properties).find((name) => plain(name) === plain(argument));
	if (same !== undefined) return { path: same, isKnown: true };
	if (properties['id'] !== undefined) return { path: 'id', isKnown: true };
	return { path: [...new Set([argument, camel(argument), 'id'])], isKnown: false };
}

function statusPath(check: JsonObject): string {
	const schema = check['outputSchema'];
	const properties = isJsonObject(schema) && isJsonObject(schema['properties']) ? schema['properties'] : {};
	return properties['status'] === undefined && properties['state'] !== undefined ? 'state' : 'status';
}

/** How often an author asks to look, when a description says so. */
function pollMsIn(text: string): number | undefined {
	const [, seconds] =
		/\b(?:every|poll\w*|wait|after)\D{0,40}?(\d{1,3})\s*(?:-\s*\d{1,3}\s*)?s(?:ec|econds?)?\b/i.exec(text) ??
		[];
	return seconds === undefined || Number(seconds) < 1 ? undefined : Number(seconds) * 1_000;
}

/** The words of a name that say what it is about. */
function subjectOf(name: string): readonly string[] {
	const parts = partsOf(name).filter((part) => !STATUS.has(part));
	const isVerb = (part: string | undefined): boolean =>
		part !== undefined && [START, CHECK, CANCEL].some((set) => set.has(part));
	const begun = isVerb(parts[0]) ? parts.slice(1) : isVerb(parts.at(-1)) ? parts.slice(0, -1) : parts;
	const nouns = begun.filter((part) => part !== 'details');
	const telling = nouns.filter((part) => !FILLER.has(part));
	return telling.length > 0 ? telling : nouns;
}

function partsOf(name: string): readonly string[] {
	return name
		.replace(/([a-z])([A-Z])/g, '$1_$2')
		.toLowerCase()
		.split(/[^a-z0-9]+/)
		.filter((part) => part !== '');
}

function plain(name: string): string {
	return name.replace(/_/g, '').toLowerCase();
}

function camel(name: string): string {
	return name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

function words(text: string): ReadonlySet<string> {
	return new Set(text.split(' '));
}
