import { Excalidraw, MainMenu } from '@excalidraw/excalidraw';
import '@excalidraw/excalidraw/index.css';
import { createRoot } from 'react-dom/client';

let stored = '';
let queue = Promise.resolve(); // One request at a time, so that the last scene is stored last.
function save(elements) {
  const scene = JSON.stringify(elements.filter((element) => !element.isDeleted).map(({ type, x, y, width, height, text, backgroundColor }) =>
    ({ type, x, y, width, height, text, backgroundColor })));
  if (scene === stored) return;
  stored = scene;
  queue = queue.then(() => fetch('/store/scene', { method: 'POST', body: scene }));
}

createRoot(document.querySelector('#app')).render(
  <div style={{ height: '96vh' }}><Excalidraw onChange={save} UIOptions={{ welcomeScreen: false }}><MainMenu><MainMenu.DefaultItems.ClearCanvas /></MainMenu></Excalidraw></div>);
