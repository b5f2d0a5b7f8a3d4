// node install.mjs FOLDER: unpacks the browser of node_modules into the folder, with the fonts that its pages are drawn with and the
// accessibility checker. Needs Node's own modules and tar. The folder is there whole or not at all.
import { chmodSync, copyFileSync, createReadStream, createWriteStream, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createBrotliDecompress } from 'node:zlib';
import { pipeline } from 'node:stream/promises';
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const modules = join(import.meta.dirname, 'node_modules');
const target = process.argv[2];
const to = `${target}.${process.pid}`;

const inflate = (name, sink) => pipeline(createReadStream(join(modules, '@sparticuz/chromium/bin', name)), createBrotliDecompress(), sink);
const untar = (name) => new Promise((done, failed) => {
  const tar = spawn('tar', ['-xf', '-', '--no-same-owner', '-C', to], { stdio: ['pipe', 'inherit', 'inherit'] });
  tar.on('error', failed);
  tar.on('close', (code) => (code === 0 ? done() : failed(new Error(`tar of ${name} ended with ${code}`))));
  inflate(name, tar.stdin).catch(failed);
});

mkdirSync(to, { recursive: true });
await Promise.all([
  inflate('chromium.br', createWriteStream(join(to, 'chromium'))),
  untar('al2023.tar.br'), // lib: libnss3.so and what it needs
  untar('fonts.tar.br'), // fonts/Open_Sans
  untar('swiftshader.tar.br'), // drawing without a graphics card: without it the GPU process crashes twice at each start
]);
chmodSync(join(to, 'chromium'), 0o755);
for (const font of ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono', 'DejaVuSansMono-Bold'])
  copyFileSync(join(modules, 'dejavu-fonts-ttf/ttf', `${font}.ttf`), join(to, 'fonts', `${font}.ttf`));
copyFileSync(join(modules, 'axe-core/axe.min.js'), join(to, 'axe.min.js'));

// Fonts of the machine play no part: a screenshot looks the same everywhere.
const alias = (family, font) => `<alias><family>${family}</family><prefer><family>${font}</family></prefer></alias>`;
rmSync(join(to, 'fonts.conf'), { force: true });
writeFileSync(join(to, 'fonts.conf'), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir>
${alias('system-ui', 'Open Sans')}${alias('sans-serif', 'Open Sans')}${alias('monospace', 'DejaVu Sans Mono')}
</fontconfig>
`);
rmSync(target, { recursive: true, force: true });
renameSync(to, target);
