/** Which folders of this machine a caller may have pipelines run in. */
import { realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** The roots that the environment names, separated as in PATH; the working directory when it names none. */
export function rootsFrom(text: string | undefined): readonly string[] {
	const named = (text ?? '').split(delimiter).filter((root) => root !== '');
	return named.length === 0 ? [process.cwd()] : named.map((root) => resolve(root));
}

/**
 * The real path of a checkout.
 *
 * @throws when it is not a folder at or below one of the roots, wherever links lead. Of a path outside it is
 * not told whether it exists.
 */
export function findCheckout(checkout: string, roots: readonly string[]): string {
	const realRoots = roots.map((root) => realpath(root) ?? root);
	const path = resolve(checkout);
	const allowed = `The allowed roots (PIPELINE_ROOTS) are: ${roots.join(', ')}`;
	const isNamedBelow = [...roots, ...realRoots].some((root) => isBelow(path, root));
	const real = realpath(path);
	if (real === undefined)
		throw new Error(
			isNamedBelow ? `There is no folder ${path}` : `${path} is not below an allowed root. ${allowed}`,
		);
	if (!realRoots.some((root) => isBelow(real, root)))
		throw new Error(`${path} ${isNamedBelow ? 'leads out of' : 'is not below'} an allowed root. ${allowed}`);
	if (!statSync(real).isDirectory()) throw new Error(`${path} is not a folder`);
	return real;
}

/**
 * The real path of a file that is named relative to a checkout.
 *
 * @throws when it is not a file below the checkout, wherever links lead.
 */
export function findFile(file: string, checkout: string): string {
	const path = join(checkout, file);
	const outside = `${file} is not below the checkout ${checkout}`;
	if (isAbsolute(file) || !isBelow(path, checkout)) throw new Error(outside);
	const real = realpath(path);
	if (real === undefined) throw new Error(`There is no file ${file} in ${checkout}`);
	if (!isBelow(real, checkout)) throw new Error(outside);
	if (!statSync(real).isFile()) throw new Error(`${file} in ${checkout} is not a file`);
	return real;
}

function isBelow(path: string, root: string): boolean {
	const way = relative(root, path);
	return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function realpath(path: string): string | undefined {
	try {
		return realpathSync(path);
	} catch {
		return undefined;
	}
}
