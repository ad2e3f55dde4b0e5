export { awaited, FakeClock, settle } from './fake-clock.ts';
