/** Serves a folder in a process of its own, so that neither side of a comparison shares its thread; prints where. */
import { LoopbackServer } from './static-server.ts';

const server = await LoopbackServer.folder(process.argv[2] ?? '.');
console.log(server.origin);
