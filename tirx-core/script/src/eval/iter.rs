//! Iterators: the values of `iter`, `zip`, `map`, generators and the like. They are lazy.

use std::cell::RefCell;
use std::rc::Rc;

use super::generator::Generator;
use super::value::{Range, Value};
use super::{Args, Interpreter};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// An iterator.
pub struct Iter {
    source: RefCell<Source>,
    /// The return value of a finished generator.
    pub(super) returned: RefCell<Value>,
}

/// What gives the next item; `None` at the end.
type Next = dyn FnMut(&mut Interpreter, Span) -> Result<Option<Value>>;

/// The source of an iterator's items.
enum Source {
    /// A fixed list of items.
    Items(std::vec::IntoIter<Value>),
    /// A list, which may grow during iteration.
    List(Rc<RefCell<Vec<Value>>>, usize),
    /// Integers.
    Range(Range, usize),
    /// `itertools.count`: the next value, and the step.
    Count(Value, Value),
    /// A Rust closure.
    Native(Box<Next>),
    /// A generator of the kernel file.
    Generator(Box<Generator>),
    /// Exhausted.
    Done,
    /// The next item is being computed.
    Running,
}

impl Iter {
    fn over(source: Source) -> Value {
        Value::Iterator(Rc::new(Iter {
            source: RefCell::new(source),
            returned: RefCell::new(Value::None),
        }))
    }

    /// An iterator over a fixed list of items.
    pub(super) fn items(items: Vec<Value>) -> Value {
        Iter::over(Source::Items(items.into_iter()))
    }

    /// An endless count.
    pub(super) fn count(start: Value, step: Value) -> Value {
        Iter::over(Source::Count(start, step))
    }

    /// A generator.
    pub(super) fn generator(generator: Generator) -> Value {
        Iter::over(Source::Generator(Box::new(generator)))
    }

    /// An iterator over items that a closure makes.
    pub(super) fn native(
        next: impl FnMut(&mut Interpreter, Span) -> Result<Option<Value>> + 'static,
    ) -> Value {
        Iter::over(Source::Native(Box::new(next)))
    }

    /// Marks it as exhausted.
    pub(super) fn stop(&self) {
        drop(self.source.replace(Source::Done));
    }

    /// Whether it is certainly infinite.
    fn is_endless(&self) -> bool {
        matches!(&*self.source.borrow(), Source::Count(..))
    }

    /// Whether it is a generator of the kernel file.
    pub(super) fn is_generator(&self) -> bool {
        matches!(&*self.source.borrow(), Source::Generator(_))
    }
}

/// How a generator is resumed.
pub(super) enum Resume {
    /// With the value of the suspended `yield`.
    Value(Value),
    /// With an exception raised there.
    Raise(Value),
}

impl Interpreter {
    /// The next item of an iterator.
    pub(super) fn next_item(&mut self, it: &Iter, span: Span) -> Result<Option<Value>> {
        self.resume_item(it, Resume::Value(Value::None), span)
    }

    /// The next item of an iterator, resumed with a value or exception.
    pub(super) fn resume_item(&mut self, it: &Iter, with: Resume, span: Span) -> Result<Option<Value>> {
        self.step(span)?;
        let mut source = it.source.replace(Source::Running);
        if let Source::Running = source {
            return self.raise("ValueError", span, "this generator is already running");
        }
        let result = self.nested(span, |interp| match &mut source {
            Source::Items(items) => Ok(items.next()),
            Source::List(list, at) => {
                *at += 1;
                Ok(list.borrow().get(*at - 1).cloned())
            }
            Source::Range(range, at) => {
                *at += 1;
                Ok((*at <= range.len()).then(|| Value::Int(range.get(*at - 1))))
            }
            Source::Count(next, step) => {
                let item = next.clone();
                *next = interp.binary(tirx_python::Operator::Add, &item, step, span)?;
                Ok(Some(item))
            }
            Source::Native(next) => next(interp, span),
            Source::Generator(generator) => match interp.resume(generator, with, span) {
                Ok(Some(item)) => Ok(Some(item)),
                end => {
                    *it.returned.borrow_mut() = generator.take_returned();
                    end
                }
            },
            Source::Done | Source::Running => Ok(None),
        });
        let ended = match &result {
            Ok(item) => item.is_none(),
            Err(_) => matches!(source, Source::Generator(_)),
        };
        *it.source.borrow_mut() = if ended { Source::Done } else { source };
        result
    }

    /// All further items of an iterator.
    pub(super) fn drain(&mut self, it: &Iter, span: Span) -> Result<Vec<Value>> {
        if it.is_endless() {
            return error(span, "this iterator is endless");
        }
        let mut items = Vec::new();
        while let Some(item) = self.next_item(it, span)? {
            items.push(item);
            if items.len() > super::limits::ITEMS {
                return self.limit(
                    span,
                    format!("a value grew beyond {} items", super::limits::ITEMS),
                );
            }
        }
        Ok(items)
    }

    /// An iterator over a value: iterators give themselves.
    pub(super) fn iterator(&mut self, value: &Value, span: Span) -> Result<Rc<Iter>> {
        let made = match value {
            Value::Iterator(it) => return Ok(it.clone()),
            Value::List(list) => Iter::over(Source::List(list.clone(), 0)),
            Value::Range(range) => Iter::over(Source::Range(*range, 0)),
            Value::Instance(i) => {
                if let Some(f) = self.class_attribute(&i.class, "__iter__") {
                    let it = self.call_method(&f, value, Args::default(), span)?;
                    if let Value::Instance(j) = &it {
                        let Some(next) = self.class_attribute(&j.class, "__next__") else {
                            return self.raise("TypeError", span, "__iter__ gave no iterator");
                        };
                        self.until(next, it, "StopIteration", None)
                    } else {
                        return self.nested(span, |i| i.iterator(&it, span));
                    }
                } else if let Some(get) = self.class_attribute(&i.class, "__getitem__") {
                    self.until(get, value.clone(), "IndexError", Some(0))
                } else {
                    Iter::items(self.iterate(value, span)?)
                }
            }
            other => Iter::items(self.iterate(other, span)?),
        };
        match made {
            Value::Iterator(it) => Ok(it),
            _ => error(span, "this has no items"),
        }
    }

    /// An iterator over a method's results until it raises an exception; with numbers from `from` as its arguments.
    fn until(&self, method: Value, receiver: Value, end: &'static str, from: Option<i128>) -> Value {
        let mut at = from;
        Iter::native(move |interp, span| {
            let args = Args::positional(at.map(Value::Int), span);
            at = at.map(|n| n + 1);
            match interp.call_method(&method, &receiver, args, span) {
                Ok(v) => Ok(Some(v)),
                Err(e) if interp.raised_is(&e, end) => {
                    interp.exceptions.raised = None;
                    Ok(None)
                }
                Err(e) => Err(e),
            }
        })
    }

    /// `zip`.
    pub(super) fn zip(&mut self, values: &[Value], strict: bool, span: Span) -> Result<Value> {
        let mut sources = Vec::new();
        for value in values {
            sources.push(self.iterator(value, span)?);
        }
        Ok(Iter::native(move |interp, span| {
            let mut row = Vec::with_capacity(sources.len());
            for (i, source) in sources.iter().enumerate() {
                match interp.next_item(source, span)? {
                    Some(item) => row.push(item),
                    None if strict && i > 0 => {
                        return interp.raise("ValueError", span, "zip() arguments have different lengths");
                    }
                    None if strict => {
                        for other in &sources[1..] {
                            if interp.next_item(other, span)?.is_some() {
                                return interp.raise(
                                    "ValueError",
                                    span,
                                    "zip() arguments have different lengths",
                                );
                            }
                        }
                        return Ok(None);
                    }
                    None => return Ok(None),
                }
            }
            Ok((!row.is_empty()).then(|| Value::tuple(row)))
        }))
    }
}

/// Methods of generators: `send`, `throw`, `close`.
pub(super) fn method(it: &Rc<Iter>, name: &str) -> Option<Value> {
    let name = ["send", "throw", "close", "__next__"]
        .into_iter()
        .find(|n| *n == name)?;
    let it = it.clone();
    Some(Value::builtin(name, move |interp, args, span| {
        let argument = args.positional.first().map_or(Value::None, |a| a.0.clone());
        let with = match name {
            "throw" => Resume::Raise(argument),
            "close" if !it.is_generator() => return Ok(Value::None),
            "close" => Resume::Raise(interp.exception_of("GeneratorExit", vec![])),
            _ => Resume::Value(argument),
        };
        match interp.resume_item(&it, with, span) {
            Ok(Some(_)) if name == "close" => {
                interp.raise("RuntimeError", span, "the generator went on after close()")
            }
            Err(e) if name == "close" && interp.raised_is(&e, "GeneratorExit") => {
                interp.exceptions.raised = None;
                Ok(Value::None)
            }
            Ok(None) if name == "close" => Ok(Value::None),
            Ok(Some(item)) => Ok(item),
            Ok(None) => interp.stop_iteration(&it, span),
            Err(e) => Err(e),
        }
    }))
}

impl Interpreter {
    /// `StopIteration`, with what the generator returned.
    pub(super) fn stop_iteration<R>(&mut self, it: &Iter, span: Span) -> Result<R> {
        let args = match it.returned.borrow().clone() {
            Value::None => vec![],
            value => vec![value],
        };
        self.raise_with("StopIteration", args, span, "the iterator has no more items")
    }
}
