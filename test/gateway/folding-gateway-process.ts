/** A gateway that is killed: `folding-gateway-process.ts <url of the server> <store>`. Says its own URL on stdout. */
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { systemClock } from '../../src/client/clock.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { listen } from '../../src/server/index.ts';
import { gatewayOptions, REPORTS } from './folding-gateway.ts';

const [url = '', file = ''] = process.argv.slice(2);
const gateway = new Gateway({
	...gatewayOptions(url, REPORTS, { backend: sqlite(file) }),
	clock: systemClock,
});
const { url: own } = await listen(gateway.server, { port: 0 });
process.stdout.write(`${own}\n`);
