import { afterAll, describe, test } from 'vitest';
import { backendContract } from '../../src/testing/backend-contract.ts';
import { postgresService } from '../support/postgres.ts';

const service = await postgresService();

if (typeof service === 'string') test.skip(`postgres: ${service}`, () => {});
else {
	afterAll(() => service.close());
	backendContract({ name: 'postgres', create: (time) => service.newBackend({ time }) }, { describe, test });
}
