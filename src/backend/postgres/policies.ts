import type { TaskPolicy } from '../record.ts';

/** How many policies are remembered; a server has about as many as it has tools. */
const REMEMBERED = 1_000;

/** Every task has a policy, but there are only a few different ones: each is parsed and written out once. */
const byText = new Map<string, TaskPolicy>();

/** Only frozen policies, such as all that come out of here: one still is what it was. */
const texts = new WeakMap<TaskPolicy, string>();

export function policyText(policy: TaskPolicy): string {
	return texts.get(policy) ?? JSON.stringify(policy);
}

export function policyOf(text: string): TaskPolicy {
	const known = byText.get(text);
	if (known) return known;
	const value = JSON.parse(text) as TaskPolicy;
	const policy: TaskPolicy = Object.freeze({ ...value, retry: Object.freeze(value.retry) });
	if (byText.size >= REMEMBERED) byText.clear();
	byText.set(text, policy);
	texts.set(policy, text);
	return policy;
}
