export * from './errors.ts';
export * from './protocol/capabilities.ts';
export * from './protocol/json.ts';
export * from './protocol/names.ts';
export * from './protocol/status.ts';
export * from './protocol/task.ts';
