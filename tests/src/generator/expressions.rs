//! Random expressions of a wanted dtype, with their bounds: no overflow of signed integers, no division by zero, no
//! shift by the width or more, no NaN, no infinity.
//!
//! Unsigned integers may wrap: that is defined, and what a simplifier must not forget.

use tirx_core::ir::DType;

use super::bounds::{Bounds, most};
use super::program::{Expr, pieces};
use super::{FLOATS, Generator, INTEGERS};

impl Generator {
    /// An expression of a dtype; `depth` bounds its nesting.
    pub(super) fn expr(&mut self, dtype: DType, depth: u32) -> Expr {
        if depth == 0 || self.random.chance(12) {
            return self.leaf(dtype, depth);
        }
        if dtype.is_float8() {
            self.float8(dtype, depth)
        } else if dtype.is_bool() {
            self.boolean(depth)
        } else if dtype.is_integer() {
            self.integer(dtype, depth)
        } else {
            self.float(dtype, depth)
        }
    }

    /// An expression that is the same in all threads of a block.
    pub(super) fn uniform(&mut self, dtype: DType, depth: u32) -> Expr {
        let before = std::mem::replace(&mut self.uniform_only, true);
        let expr = self.expr(dtype, depth);
        self.uniform_only = before;
        expr
    }

    pub(super) fn leaf(&mut self, dtype: DType, depth: u32) -> Expr {
        if self.random.chance(45)
            && let Some(load) = self.load(dtype, depth)
        {
            return load;
        }
        let values: Vec<Expr> = self
            .values
            .iter()
            .filter(|v| v.expr.dtype == dtype && (v.expr.uniform || !self.uniform_only))
            .map(|v| v.expr.clone())
            .collect();
        if !values.is_empty() && self.random.chance(75) {
            return self.random.pick(&values).clone();
        }
        // A value of another dtype, cast.
        if self.random.chance(40) {
            let others: Vec<Expr> = self
                .values
                .iter()
                .filter(|v| v.expr.dtype != dtype && (v.expr.uniform || !self.uniform_only))
                .filter(|v| !self.plain || v.expr.dtype.is_integer())
                .map(|v| v.expr.clone())
                .collect();
            if !others.is_empty() {
                let value = self.random.pick(&others).clone();
                return self.cast(value, dtype);
            }
        }
        self.literal(dtype)
    }

    /// A constant.
    pub(super) fn literal(&mut self, dtype: DType) -> Expr {
        if dtype.is_bool() {
            let mut e = Expr::constant(dtype, self.random.below(2) as i128);
            e.bounds = Bounds::Bool;
            return e;
        }
        if dtype.is_integer() {
            let (low, high) = Bounds::from_dtype(dtype).ints();
            let value = match self.random.below(10) {
                0 => low,
                1 => high,
                2 => self.random.between(low, high),
                3 => 1i128 << self.random.below(dtype.bits as usize - 1),
                4 | 5 => self.random.between((-20).max(low), 20),
                _ => self.random.between(0, 9),
            };
            return self.int_literal(dtype, value);
        }
        if dtype.is_float8() {
            let value = *self.random.pick(&[0.0, 0.5, 1.0, -2.0, 3.0, 16.0]);
            return self.float_literal(dtype, value);
        }
        let value = (self.random.between(-32, 32) as f64) * 0.25;
        self.float_literal(dtype, value)
    }

    /// An integer constant, bare where that means the same dtype.
    pub(super) fn int_literal(&mut self, dtype: DType, value: i128) -> Expr {
        let bare = dtype == DType::INT32 && value >= 0 && self.random.chance(60);
        if bare {
            return Expr::literal(dtype, Bounds::Int(value, value), value.to_string());
        }
        Expr::constant(dtype, value)
    }

    pub(super) fn float_literal(&mut self, dtype: DType, value: f64) -> Expr {
        let text = if dtype == DType::FLOAT32 && value >= 0.0 && self.random.chance(50) {
            format!("{value:?}")
        } else {
            format!("T.{dtype}({value:?})")
        };
        Expr::literal(dtype, Bounds::Float(value.abs()), text)
    }

    /// A value as another dtype, kept from overflow.
    pub(super) fn cast(&mut self, e: Expr, dtype: DType) -> Expr {
        if e.dtype == dtype {
            return e;
        }
        // From and to float8 by way of float32, where there is no conversion of its own.
        let direct = |d: DType| d.is_floating() && d.bits <= 32;
        if e.dtype.is_float8() && !direct(dtype) || dtype.is_float8() && !direct(e.dtype) {
            let e = self.cast(e, DType::FLOAT32);
            return self.cast(e, dtype);
        }
        let e = self.convertible(e, dtype);
        if dtype.is_bool() {
            let zero = if e.dtype.is_integer() {
                Expr::constant(e.dtype, 0)
            } else {
                self.float_literal(e.dtype, 0.0)
            };
            return Expr::new(DType::BOOL, Bounds::Bool, pieces!["(", e, " != ", zero, ")"]);
        }
        let (e, bounds) = if dtype.is_integer() {
            if e.dtype.is_integer() || e.dtype.is_bool() {
                // Narrowing wraps.
                let (low, high) = e.bounds.ints();
                let bounds = Bounds::from_dtype(dtype);
                let kept = if bounds.holds(Bounds::Int(low, high)) {
                    Bounds::Int(low, high)
                } else {
                    bounds
                };
                (e, kept)
            } else {
                let (low, high) = Bounds::from_dtype(dtype).ints();
                // Out-of-range values saturate. (Constants are rejected, and narrow integers have no saturating
                // conversion.)
                if !e.constant && matches!(dtype.bits, 32) && e.dtype.bits <= 32 && self.random.chance(20) {
                    return Expr::new(
                        dtype,
                        Bounds::from_dtype(dtype),
                        pieces!["T.cast(", e, format!(", \"{dtype}\")")],
                    );
                }
                let high = high.min(30000);
                let e = self.fit(e, Bounds::Float(high as f64));
                // NaN may be converted to the least value.
                let bounds = |least| match self.wild && dtype.bits >= 32 {
                    true => Bounds::from_dtype(dtype),
                    false => Bounds::Int(least, high),
                };
                if low == 0 {
                    let e = Expr::new(e.dtype, e.bounds, pieces![format!("T.fabs("), e, ")"]);
                    (e, bounds(0))
                } else {
                    (e, bounds(-high))
                }
            }
        } else {
            let cap = most(dtype);
            let e = if e.bounds.magnitude() > cap {
                let bounds = if e.dtype.is_integer() {
                    Bounds::Int(if e.dtype.is_uint() { 0 } else { -30000 }, 30000)
                } else {
                    Bounds::Float(1000f64.min(cap))
                };
                self.fit(e, bounds)
            } else {
                e
            };
            // Values with two bits of precision may be rounded far.
            let magnitude = match dtype.is_float8() {
                true => (e.bounds.magnitude() * 1.25).min(cap),
                false => e.bounds.magnitude(),
            };
            (e, Bounds::Float(magnitude))
        };
        Expr::new(dtype, bounds, pieces!["T.cast(", e, format!(", \"{dtype}\")")])
    }

    /// The expression, or another one where it may fold to a constant that `dtype` cannot represent: constants are
    /// converted exactly or rejected.
    fn convertible(&mut self, e: Expr, dtype: DType) -> Expr {
        let fits = Bounds::from_dtype(dtype).holds(e.bounds);
        if !e.constant || fits || !dtype.is_integer() || !e.dtype.is_integer() {
            return e;
        }
        let value = self.random.between(0, 9);
        self.int_literal(e.dtype, value)
    }

    /// The expression, limited to bounds by clamping, masking or a remainder.
    pub(super) fn fit(&mut self, e: Expr, bounds: Bounds) -> Expr {
        if bounds.holds(e.bounds) {
            return e;
        }
        let dtype = e.dtype;
        match bounds {
            Bounds::Bool => e,
            Bounds::Float(_) if dtype.is_float8() => {
                let wide = self.cast(e, DType::FLOAT32);
                let wide = self.fit(wide, bounds);
                self.cast(wide, dtype)
            }
            Bounds::Float(most) => {
                let (high, low) = (self.float_literal(dtype, most), self.float_literal(dtype, -most));
                Expr::new(
                    dtype,
                    bounds,
                    pieces!["T.max(T.min(", e, ", ", high, "), ", low, ")"],
                )
            }
            Bounds::Int(low, high) => {
                let (least, top) = Bounds::from_dtype(dtype).ints();
                let count = high - low + 1;
                let mask = ((high + 1) as u128)
                    .checked_ilog2()
                    .map_or(0, |k| (1i128 << k) - 1);
                match self.random.below(3) {
                    0 if low <= 0 && mask > 0 => {
                        let m = self.int_literal(dtype, mask);
                        Expr::new(dtype, Bounds::Int(0, mask), pieces!["(", e, " & ", m, ")"])
                    }
                    1 if count <= top => {
                        let m = self.int_literal(dtype, count);
                        let remainder =
                            Expr::new(dtype, Bounds::Int(0, count - 1), pieces!["(", e, " % ", m, ")"]);
                        if low == 0 {
                            return remainder;
                        }
                        if low < least {
                            return self.fit(remainder, bounds);
                        }
                        let low = self.int_literal(dtype, low);
                        Expr::new(dtype, bounds, pieces!["(", remainder, " + ", low, ")"])
                    }
                    _ => {
                        let (h, l) = (self.int_literal(dtype, high), self.int_literal(dtype, low));
                        Expr::new(dtype, bounds, pieces!["T.max(T.min(", e, ", ", h, "), ", l, ")"])
                    }
                }
            }
        }
    }

    fn boolean(&mut self, depth: u32) -> Expr {
        let d = depth - 1;
        let bool_of = |pieces| Expr::new(DType::BOOL, Bounds::Bool, pieces);
        match self.random.below(13) {
            12 => {
                let (a, b, c) = (
                    self.expr(DType::INT32, d),
                    self.expr(DType::INT32, d),
                    self.expr(DType::INT32, d),
                );
                let (first, second) = *self
                    .random
                    .pick(&[(" < ", " <= "), (" >= ", " > "), (" == ", " < ")]);
                bool_of(pieces!["(", a, first, b, second, c, ")"])
            }
            0 => {
                let a = self.expr(DType::BOOL, d);
                bool_of(pieces!["(not ", a, ")"])
            }
            1 | 2 => {
                let (a, b) = (self.expr(DType::BOOL, d), self.expr(DType::BOOL, d));
                let op = *self.random.pick(&[" and ", " or "]);
                bool_of(pieces!["(", a, op, b, ")"]).folding()
            }
            3 if !self.plain => {
                let dtype = *self.random.pick(FLOATS);
                let a = self.expr(dtype, d);
                let name = *self.random.pick(&["T.isnan(", "T.isinf("]);
                bool_of(pieces![name, a, ")"])
            }
            4 => {
                let (c, a, b) = (
                    self.expr(DType::BOOL, d),
                    self.expr(DType::BOOL, d),
                    self.expr(DType::BOOL, d),
                );
                bool_of(pieces!["T.if_then_else(", c, ", ", a, ", ", b, ")"]).folding()
            }
            _ => {
                let dtype = if self.random.chance(60) {
                    DType::INT32
                } else {
                    self.any_dtype()
                };
                if dtype.is_bool() {
                    return self.expr(dtype, d);
                }
                let (a, b) = (self.expr(dtype, d), self.expr(dtype, d));
                let op = *self.random.pick(&[" < ", " <= ", " > ", " >= ", " == ", " != "]);
                bool_of(pieces!["(", a, op, b, ")"])
            }
        }
    }

    /// Two operands with the common dtype `dtype`: mostly both of it, at times one of a dtype that is promoted.
    pub(super) fn operands(&mut self, dtype: DType, depth: u32) -> (Expr, Expr) {
        let a = self.expr(dtype, depth);
        if self.random.chance(85) {
            let b = self.expr(dtype, depth);
            return (a, b);
        }
        let weaker: Vec<DType> = INTEGERS
            .iter()
            .chain(if self.plain { &[] } else { FLOATS })
            .copied()
            .filter(|w| *w != dtype && tirx_core::script::typing::common_dtype(*w, dtype) == Some(dtype))
            .collect();
        if weaker.is_empty() {
            return (a, self.expr(dtype, depth));
        }
        let other = *self.random.pick(&weaker);
        let b = self.expr(other, depth);
        let mut b = self.convertible(b, dtype);
        // The bounds after promotion.
        if dtype.is_integer() {
            let whole = Bounds::from_dtype(dtype);
            if !whole.holds(b.bounds) {
                b.bounds = whole;
            }
        } else if b.bounds.magnitude() > most(dtype) {
            let bounds = if other.is_integer() {
                Bounds::Int(if other.is_uint() { 0 } else { -30000 }, 30000)
            } else {
                Bounds::Float(1000.0)
            };
            b = self.fit(b, bounds);
            b.bounds = Bounds::Float(b.bounds.magnitude());
        } else {
            b.bounds = Bounds::Float(b.bounds.magnitude());
        }
        if self.random.chance(50) { (a, b) } else { (b, a) }
    }

    fn integer(&mut self, dtype: DType, depth: u32) -> Expr {
        let d = depth - 1;
        let whole = Bounds::from_dtype(dtype);
        let (low, high) = whole.ints();
        let signed = dtype.is_int();
        // Bounds of a result: wrapped where that is defined, otherwise the operands are made smaller.
        let of = |a: i128, b: i128| {
            if a >= low && b <= high {
                Bounds::Int(a, b)
            } else {
                whole
            }
        };
        match self.random.below(22) {
            0..=2 => {
                let (a, b) = self.operands(dtype, d);
                let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                if signed && (al + bl < low || ah + bh > high) {
                    let half = Bounds::Int(low / 2, high / 2);
                    let (a, b) = (self.same(a, dtype, half), self.same(b, dtype, half));
                    let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                    return Expr::new(dtype, of(al + bl, ah + bh), pieces!["(", a, " + ", b, ")"]);
                }
                Expr::new(dtype, of(al + bl, ah + bh), pieces!["(", a, " + ", b, ")"])
            }
            3..=5 => {
                let (a, b) = self.operands(dtype, d);
                let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                if signed && (al - bh < low || ah - bl > high) {
                    let half = Bounds::Int(low / 2, high / 2);
                    let (a, b) = (self.same(a, dtype, half), self.same(b, dtype, half));
                    let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                    return Expr::new(dtype, of(al - bh, ah - bl), pieces!["(", a, " - ", b, ")"]);
                }
                Expr::new(dtype, of(al - bh, ah - bl), pieces!["(", a, " - ", b, ")"])
            }
            6 | 7 => {
                let (mut a, mut b) = self.operands(dtype, d);
                let corners = |a: &Expr, b: &Expr| {
                    let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                    let products = [
                        al.saturating_mul(bl),
                        al.saturating_mul(bh),
                        ah.saturating_mul(bl),
                        ah.saturating_mul(bh),
                    ];
                    (
                        products.iter().copied().fold(i128::MAX, i128::min),
                        products.iter().copied().fold(i128::MIN, i128::max),
                    )
                };
                // Products of two unsigned 64-bit numbers saturate at the same bound.
                let (l, h) = corners(&a, &b);
                if signed && (l < low || h > high) {
                    let root = 1i128 << (dtype.bits / 2 - 1);
                    a = self.same(a, dtype, Bounds::Int(-root, root));
                    b = self.same(b, dtype, Bounds::Int(-root, root));
                }
                let (l, h) = corners(&a, &b);
                Expr::new(dtype, of(l, h), pieces!["(", a, " * ", b, ")"]).folding()
            }
            8..=10 => self.division(dtype, d).folding(),
            11 => {
                let (a, b) = self.operands(dtype, d);
                let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                if self.random.chance(50) {
                    let bounds = Bounds::Int(al.min(bl), ah.min(bh));
                    Expr::new(dtype, bounds, pieces!["T.min(", a, ", ", b, ")"])
                } else {
                    let bounds = Bounds::Int(al.max(bl), ah.max(bh));
                    Expr::new(dtype, bounds, pieces!["T.max(", a, ", ", b, ")"])
                }
            }
            12 | 13 => {
                let (a, b) = (self.expr(dtype, d), self.expr(dtype, d));
                let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
                let bounds = if al >= 0 && bl >= 0 {
                    let bits = 128 - (ah.max(bh) as u128).leading_zeros();
                    Bounds::Int(0, ((1i128 << bits) - 1).min(high))
                } else {
                    whole
                };
                if self.random.chance(15) {
                    let name = *self
                        .random
                        .pick(&["T.bitwise_and(", "T.bitwise_or(", "T.bitwise_xor("]);
                    return Expr::new(dtype, bounds, pieces![name, a, ", ", b, ")"]);
                }
                let op = *self.random.pick(&[" & ", " | ", " ^ "]);
                Expr::new(dtype, bounds, pieces!["(", a, op, b, ")"])
            }
            14 => {
                let amount = self.random.between(0, dtype.bits as i128 - 1);
                let a = self.expr(dtype, d);
                let (al, ah) = a.bounds.ints();
                if self.random.chance(50) {
                    let s = self.int_literal(dtype, amount);
                    let bounds = Bounds::Int(al >> amount, ah >> amount);
                    return Expr::new(dtype, bounds, pieces!["(", a, " >> ", s, ")"]);
                }
                let a = if signed {
                    self.fit(a, Bounds::Int(0, high >> amount))
                } else {
                    a
                };
                let (al, ah) = a.bounds.ints();
                let s = self.int_literal(dtype, amount);
                let bounds = of(al << amount, ah.checked_shl(amount as u32).unwrap_or(i128::MAX));
                Expr::new(dtype, bounds, pieces!["(", a, " << ", s, ")"])
            }
            15 => {
                // A shift by a value.
                let a = self.expr(dtype, d);
                let s = self.expr(dtype, d);
                let s = self.fit(s, Bounds::Int(0, dtype.bits as i128 - 1));
                let (al, ah) = a.bounds.ints();
                let bounds = Bounds::Int(al.min(0), ah.max(0));
                if dtype.is_uint() && self.random.chance(40) {
                    return Expr::new(dtype, whole, pieces!["(", a, " << ", s, ")"]);
                }
                Expr::new(dtype, bounds, pieces!["(", a, " >> ", s, ")"])
            }
            16 => {
                let a = self.expr(dtype, d);
                if signed {
                    let (al, ah) = a.bounds.ints();
                    return Expr::new(dtype, Bounds::Int(-ah - 1, -al - 1), pieces!["(~", a, ")"]);
                }
                Expr::new(dtype, whole, pieces!["(~", a, ")"])
            }
            17 if signed => {
                let a = self.expr(dtype, d);
                let a = self.fit(a, Bounds::Int(-high, high));
                let (al, ah) = a.bounds.ints();
                if self.random.chance(50) {
                    return Expr::new(dtype, Bounds::Int(-ah, -al), pieces!["(-", a, ")"]);
                }
                let most = al.abs().max(ah.abs());
                Expr::new(dtype, Bounds::Int(0, most), pieces!["T.abs(", a, ")"])
            }
            18 => self.choice(dtype, d),
            19 => {
                let from = self.any_dtype();
                let e = self.expr(from, d);
                self.cast(e, dtype)
            }
            20 | 21 if self.plain => self.leaf(dtype, depth),
            20 if dtype.bits >= 32 => {
                let name = if self.random.chance(60) || dtype != DType::INT32 {
                    "T.popcount("
                } else {
                    "T.clz("
                };
                let a = self.expr(dtype, d);
                Expr::new(dtype, Bounds::Int(0, dtype.bits as i128), pieces![name, a, ")"])
            }
            21 => {
                let other = if signed {
                    DType::uint(dtype.bits)
                } else {
                    DType::int(dtype.bits)
                };
                let a = self.expr(other, d);
                Expr::new(
                    dtype,
                    whole,
                    pieces![format!("T.reinterpret(\"{dtype}\", "), a, ")"],
                )
            }
            _ => self.leaf(dtype, depth),
        }
    }

    /// An operand within bounds, of `dtype` even where it was of a dtype that is promoted.
    pub(super) fn same(&mut self, e: Expr, dtype: DType, bounds: Bounds) -> Expr {
        let e = if e.dtype == dtype { e } else { self.cast(e, dtype) };
        self.fit(e, bounds)
    }

    /// `//`, `%` and their truncating forms.
    fn division(&mut self, dtype: DType, d: u32) -> Expr {
        let (low, high) = Bounds::from_dtype(dtype).ints();
        let a = self.expr(dtype, d);
        let b = if self.random.chance(60) {
            let value = match self.random.below(4) {
                0 => 1i128 << self.random.below(dtype.bits as usize - 2),
                1 if low < 0 => self.random.between(-9, -2),
                _ => self.random.between(1, 40),
            };
            self.int_literal(dtype, value)
        } else {
            let b = self.expr(dtype, d);
            let most = high.min(self.random.between(1, 300));
            self.fit(b, Bounds::Int(1, most))
        };
        let ((al, ah), (bl, bh)) = (a.bounds.ints(), b.bounds.ints());
        // The smallest by minus one is not generated: divisors are below -1 or positive.
        let most = al.abs().max(ah.abs());
        let quotient = if bl > 0 && al >= 0 {
            Bounds::Int(0, ah)
        } else if bl > 0 {
            Bounds::Int(al, ah.max(0))
        } else {
            Bounds::Int((-most).max(low), most.min(high))
        };
        let largest = bl.abs().max(bh.abs());
        match self.random.below(6) {
            0 if bl > 0 && ah < high - bh && self.random.chance(40) => {
                let bounds = Bounds::Int(al.min(0), ah.max(0) + 1);
                Expr::new(dtype, bounds, pieces!["T.ceildiv(", a, ", ", b, ")"])
            }
            0 if self.random.chance(40) => {
                Expr::new(dtype, quotient, pieces!["T.floordiv(", a, ", ", b, ")"])
            }
            0 | 1 => Expr::new(dtype, quotient, pieces!["(", a, " // ", b, ")"]),
            2 | 3 => {
                let bounds = if bl > 0 {
                    Bounds::Int(0, bh - 1)
                } else {
                    Bounds::Int(-largest, largest)
                };
                if self.random.chance(20) {
                    return Expr::new(dtype, bounds, pieces!["T.floormod(", a, ", ", b, ")"]);
                }
                Expr::new(dtype, bounds, pieces!["(", a, " % ", b, ")"])
            }
            4 => Expr::new(dtype, quotient, pieces!["T.truncdiv(", a, ", ", b, ")"]),
            _ => {
                let bounds = Bounds::Int(if al >= 0 { 0 } else { 1 - largest }, largest - 1);
                Expr::new(dtype, bounds, pieces!["T.truncmod(", a, ", ", b, ")"])
            }
        }
    }

    /// `Select` or `if_then_else`.
    pub(super) fn choice(&mut self, dtype: DType, d: u32) -> Expr {
        let c = self.expr(DType::BOOL, d);
        let (a, b) = (self.expr(dtype, d), self.expr(dtype, d));
        let bounds = a.bounds.union(b.bounds);
        let name = *self.random.pick(&["T.Select(", "T.if_then_else(", ""]);
        if name.is_empty() {
            return Expr::new(dtype, bounds, pieces!["(", a, " if ", c, " else ", b, ")"]).folding();
        }
        Expr::new(dtype, bounds, pieces![name, c, ", ", a, ", ", b, ")"]).folding()
    }
}
