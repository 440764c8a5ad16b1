// Tests run as native ES modules (node --experimental-vm-modules); swc strips the types, tsc checks them apart.
const common = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, sourceMaps: 'inline' }] },
};
const REAL = ['conformance', 'integration'];
const project = (name) => ({
  ...common,
  ...(REAL.includes(name) ? { setupFilesAfterEnv: ['<rootDir>/test/once-more.ts'] } : {}),
  displayName: name,
  testMatch: [`<rootDir>/test/${name}/**/*.test.ts`],
});

export default {
  projects: ['tidy', 'unit', 'golden', 'sim', 'conformance', 'integration', 'lab'].map(project),
  testTimeout: 60_000,
};
