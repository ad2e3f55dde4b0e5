import { describe, test } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import { backendContract } from '../../src/testing/backend-contract.ts';

backendContract({ name: 'memory', create: async (time) => memory({ time }) }, { describe, test });
