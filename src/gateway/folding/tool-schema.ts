import { isJsonObject, type JsonObject } from '../../protocol/json.ts';

/** A tool's name; empty when it has none. */
export function nameOf({ name }: JsonObject): string {
	return typeof name === 'string' ? name : '';
}

/** What a tool says about itself; empty when it says nothing. */
export function descriptionOf({ description }: JsonObject): string {
	return typeof description === 'string' ? description : '';
}

/** The schemas of a tool's arguments by name; undefined when it names none. */
export function propertiesOf(tool: JsonObject | undefined): JsonObject | undefined {
	const schema = tool?.['inputSchema'];
	const properties = isJsonObject(schema) ? schema['properties'] : undefined;
	return isJsonObject(properties) ? properties : undefined;
}

/** The schema of one argument of a tool. */
export function propertyOf(tool: JsonObject | undefined, argument: string): JsonObject | undefined {
	const property = propertiesOf(tool)?.[argument];
	return isJsonObject(property) ? property : undefined;
}

/** Whether what a tool's schema does not name is no argument of it. */
export function takesOnlyNamed(tool: JsonObject | undefined): boolean {
	return propertiesOf(tool) !== undefined;
}
