import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  use: { viewport: { width: 640, height: 480 } },
});
