//! IR to TVMScript text, in the form that Apache TVM 0.26 prints.
//!
//! The text is the shortest that reads back as the same IR: parsing it gives a module that
//! [`structural_equal`](crate::ir::structural_equal) accepts, at every stage of lowering. Where the form TVM prints
//! would read back as something else (a scalar that is not local, a comparison of comparisons, a node that the parser
//! would fold), a longer, explicit form is printed.
//!
//! Names are those of the IR, made unique with `_1`, `_2`, … and released when their scope ends.

mod buffer;
mod expr;
mod literal;
mod names;
mod prescan;
mod stmt;
#[cfg(test)]
mod tests;
mod tile;

use std::rc::Rc;

use self::buffer::DescriptionPosition;
use self::expr::type_text;
use self::names::Names;
use self::prescan::Prescan;
use crate::ir::{Expr, IRModule, Levels, PrimFunc, Stmt, Var, with_stack_for};
use crate::layout::Layout;

/// A module as text that parses back.
pub fn print(module: &IRModule) -> String {
    with_stack_for(module.levels(), || module_text(module))
}

fn module_text(module: &IRModule) -> String {
    let mut printer = Printer::new();
    printer.line("# from tvm.script import ir as I");
    printer.line("# from tvm.script import tirx as T");
    printer.line("# from tvm.tirx.layout import Axis");
    printer.out.push('\n');
    printer.line("@I.ir_module");
    printer.line("class Module:");
    printer.indent = 1;
    if !module.attrs.is_empty() {
        let mut text = String::from("I.module_attrs(");
        printer.attr_dict(&mut text, module.attrs.iter().map(|(k, v)| (&**k, v)));
        text.push(')');
        printer.line(&text);
    }
    // In order of their names, the entry last.
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.sort_by_key(|(name, _)| (&**name == "main", name.clone()));
    for (i, (name, func)) in functions.iter().enumerate() {
        if i > 0 {
            printer.out.push('\n');
        }
        printer.function(name, func);
    }
    if module.functions.is_empty() && module.attrs.is_empty() {
        printer.line("pass");
    }
    printer.out
}

/// One function as text that parses back.
pub fn print_func(name: &str, func: &PrimFunc) -> String {
    with_stack_for(func.levels(), || {
        let mut printer = Printer::new();
        printer.line("# from tvm.script import tirx as T");
        printer.line("# from tvm.tirx.layout import Axis");
        printer.out.push('\n');
        printer.function(name, func);
        printer.out
    })
}

/// An expression as text, for messages: variables by their names.
pub fn print_expr(expr: &Expr) -> String {
    with_stack_for(expr.levels(), || Printer::new().expr_text(expr))
}

/// A layout as text: `T.TileLayout(T.S[(32, 8):(1 @ Axis.laneid, 1)])`.
pub fn print_layout(layout: &Layout) -> String {
    let mut out = String::new();
    Printer::new().layout(&mut out, layout);
    out
}

/// A statement as text, for messages and tests. Variables and buffers it does not declare are declared ahead.
pub fn print_stmt(stmt: &Stmt) -> String {
    with_stack_for(stmt.levels(), || {
        let mut printer = Printer::new();
        printer.prescan = Rc::new(Prescan::from_body(stmt));
        printer.names_expressions = true;
        printer.block(stmt);
        printer.out
    })
}

/// Text under construction.
struct Printer {
    out: String,
    indent: usize,
    names: Names,
    prescan: Rc<Prescan>,
    /// Parameters of the function being printed.
    params: Vec<Var>,
    /// Lines to print before the current one: declarations that it needs.
    before: Vec<String>,
    /// Brackets around the expression being printed.
    brackets: u32,
    /// Bodies of `T.Let` around it.
    lets: u32,
    /// Whether what stands in too many brackets is named ahead of the line: not in a message, which has no such place, nor
    /// in a signature.
    names_expressions: bool,
}

impl Printer {
    fn new() -> Printer {
        Printer {
            out: String::new(),
            indent: 0,
            names: Names::new(),
            prescan: Rc::default(),
            params: Vec::new(),
            before: Vec::new(),
            brackets: 0,
            lets: 0,
            names_expressions: false,
        }
    }

    fn function(&mut self, name: &str, func: &PrimFunc) {
        self.prescan = Rc::new(Prescan::from_body(&func.body));
        self.params = func.params.clone();
        self.names.enter();
        let symbol = func.global_symbol();
        self.line(if symbol.is_none() {
            "@T.prim_func(private=True)"
        } else {
            "@T.prim_func"
        });
        let mut definitions = Vec::new();
        let mut params = Vec::new();
        let mut matches = Vec::new();
        for param in &func.params {
            let text = match func.buffer_of(param) {
                Some(buffer) if self.prescan.uses_pointer(param) || self.declares_its_own(buffer) => {
                    let handle = self.names.define_var(param);
                    let name = self.names.define_buffer(buffer, false, true);
                    matches.push((name, handle.clone(), buffer));
                    format!("{handle}: {}", type_text(param.ty()))
                }
                Some(buffer) => {
                    let name = self.names.define_buffer(buffer, false, true);
                    let ty =
                        self.buffer_type(&name, buffer, DescriptionPosition::Signature, &mut definitions);
                    format!("{name}: {ty}")
                }
                None => {
                    // A shape may have defined it already.
                    let name = match self.names.var(param) {
                        Some(name) => name,
                        None => self.names.define_var(param),
                    };
                    format!("{name}: {}", type_text(param.ty()))
                }
            };
            params.push(text);
        }
        let ret = func
            .ret
            .as_ref()
            .map_or(String::new(), |ty| format!(" -> {}", type_text(ty)));
        self.line(&format!("def {name}({}){ret}:", params.join(", ")));
        self.indent += 1;
        for (name, handle, buffer) in matches {
            let text = self.buffer_match(&handle, buffer, &mut definitions);
            definitions.push(format!("{name} = {text}"));
        }
        for definition in definitions {
            self.line(&definition);
        }
        let mut attrs = func
            .attrs
            .iter()
            .filter(|(k, _)| &***k != "global_symbol" || symbol != Some(name))
            .peekable();
        if attrs.peek().is_some() {
            let mut text = String::from("T.func_attr(");
            self.attr_dict(&mut text, attrs.map(|(k, v)| (&**k, v)));
            text.push(')');
            self.line(&text);
        }
        self.names_expressions = true;
        self.block(&func.body);
        self.names_expressions = false;
        self.indent -= 1;
        self.names.leave();
    }
}
