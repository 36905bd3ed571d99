import { expect, test } from '@playwright/test';

const PAGE = "data:text/html,<title>Shop</title><h1>Tea</h1><button onclick=\"this.textContent='Sold'\">Buy</button>";

test.beforeEach(async ({ page }) => {
  await page.goto(PAGE);
});

test('the button sells', async ({ page }) => {
  await page.getByRole('button', { name: 'Buy' }).click();
  await expect(page.getByRole('button')).toHaveText('Sold');
});

test('the title is coffee', async ({ page }) => {
  await expect(page).toHaveTitle('Coffee', { timeout: 500 });
});

test('the selector never comes', async ({ page }) => {
  test.setTimeout(1500);
  await page.waitForSelector('#never', { timeout: 0 });
});

test('the page never loads', async ({ page }) => {
  test.setTimeout(0);
  await page.waitForSelector('#never', { timeout: 0 });
});
