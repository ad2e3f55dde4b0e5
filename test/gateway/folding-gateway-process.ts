/**
 * A gateway that is killed: `folding-gateway-process.ts <store> <speed> <servers behind it, as JSON>`. Says its own URL
 * on stdout.
 */
import type { TimeSource } from '../../src/backend/backend.ts';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { listen } from '../../src/server/index.ts';
import { type Behind, gatewayOptions } from './folding-gateway.ts';

const [file = '', speed = '1', behind = '[]'] = process.argv.slice(2);
const options = { backend: (time: TimeSource) => sqlite({ file, time }), speed: Number(speed) };
const gateway = new Gateway(gatewayOptions(JSON.parse(behind) as readonly Behind[], options));
const { url } = await listen(gateway.server, { port: 0 });
process.stdout.write(`${url}\n`);
