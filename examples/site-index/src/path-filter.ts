/** Which paths of a site the caller wants: patterns in which `*` stands for anything. */

const toExpression = (pattern: string): RegExp => {
	const whole = pattern.startsWith('/') || pattern.startsWith('*') ? pattern : `/${pattern}`;
	const parts = whole.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/gu, '\\$&'));
	return new RegExp(`^${parts.join('.*')}`, 'u');
};

export class PathFilter {
	readonly #include: readonly RegExp[];
	readonly #exclude: readonly RegExp[];

	constructor(include: readonly string[] = [], exclude: readonly string[] = []) {
		this.#include = include.map(toExpression);
		this.#exclude = exclude.map(toExpression);
	}

	wants(address: string): boolean {
		if (this.#include.length === 0 && this.#exclude.length === 0) return true;
		const { pathname, search } = new URL(address);
		const path = pathname + search;
		if (this.#exclude.some((pattern) => pattern.test(path))) return false;
		return this.#include.length === 0 || this.#include.some((pattern) => pattern.test(path));
	}
}
