import { type InputCapabilities, inputCapabilities, NO_INPUT } from '../protocol/capabilities.ts';
import { LEGACY_TASKS_VERSION } from '../protocol/legacy-tasks.ts';
import type { McpServer } from './sdk.ts';

/** What is known of a client that speaks a protocol version before 2026-07-28. */
export interface LegacyClient {
	/** Whether its version has the experimental Tasks. */
	readonly hasTasks: boolean;
	/** What it can be asked for on its connection; nothing where it has none. */
	readonly input: InputCapabilities;
	/** Whether its version tells the modes of an elicitation apart. */
	readonly hasModes: boolean;
}

/**
 * The client of an SDK server. Where it has no session, the server has not seen its `initialize`: then only its
 * request's header says which version it speaks, and nobody can ask it anything.
 */
export function legacyClient(server: McpServer, versionHeader: string | undefined): LegacyClient {
	const version = server.server.getNegotiatedProtocolVersion() ?? versionHeader;
	const capabilities = server.server.getClientCapabilities();
	const input = capabilities === undefined ? NO_INPUT : inputCapabilities(capabilities);
	const hasModes = version === LEGACY_TASKS_VERSION;
	return {
		hasTasks: version === LEGACY_TASKS_VERSION,
		input: hasModes ? input : { ...input, url: false },
		hasModes,
	};
}
