import { afterAll, describe, test } from 'vitest';
import { backendContract } from '../../src/testing/backend-contract.ts';
import { redisService } from '../support/redis.ts';

const service = await redisService();

if (typeof service === 'string') test.skip(`redis: ${service}`, () => {});
else {
	afterAll(() => service.close());
	backendContract(
		{ name: 'redis', create: async (time) => service.newBackend({ time }) },
		{ describe, test },
	);
}
