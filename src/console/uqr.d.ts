/** The part of uqr that the console uses; the relay serves the library's own file under this name. */
export { encode } from "uqr";
