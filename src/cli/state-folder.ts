import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where holdfast keeps what is a person's own: in the folder for state of the XDG rules, or the like elsewhere. */
export function stateFolder(): string {
	const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
	const windows = process.platform === 'win32' ? LOCALAPPDATA : undefined;
	// The rules say that a relative path is to be ignored.
	const state = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : undefined;
	return join(state ?? windows ?? join(homedir(), '.local', 'state'), 'holdfast');
}
