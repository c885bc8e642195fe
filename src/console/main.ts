import { createConsole } from "./console.js";

const root = document.querySelector<HTMLElement>("#console");
if (root !== null) createConsole(root);
