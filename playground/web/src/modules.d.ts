declare module "worker:text" {
  const text: string;
  export default text;
}
declare module "*.py" {
  const text: string;
  export default text;
}
