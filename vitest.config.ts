import { defineConfig } from 'vitest/config';

const shared = { pool: 'forks', testTimeout: 30_000, hookTimeout: 30_000 } as const;

export default defineConfig({
	test: {
		projects: [
			{ test: { ...shared, name: 'test', include: ['test/**/*.test.ts'] } },
			// The same as in `test`, at full length.
			{
				test: {
					...shared,
					name: 'chaos',
					include: ['test/chaos/**/*.test.ts'],
					env: { TASKS: process.env['TASKS'] ?? '2000', KILLS: process.env['KILLS'] ?? '500' },
				},
			},
			{ test: { ...shared, name: 'examples', include: ['examples/**/*.test.ts'] } },
		],
	},
});
