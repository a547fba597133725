#include "cli/study/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Result<Term> sum(const Term& a, const Term& b, double sign) {
  if (a.unit != b.unit)
    return fail(fmt::format("'{}' and '{}' cannot be added", a.unit, b.unit), "terms of one unit");
  const double near = sign > 0 ? b.estimate.low : b.estimate.high;
  const double far = sign > 0 ? b.estimate.high : b.estimate.low;
  return Term{
      {a.estimate.value + sign * b.estimate.value, a.estimate.low + sign * near,
       a.estimate.high + sign * far, std::max(a.estimate.provenance, b.estimate.provenance)},
      a.unit};
}

Term product(const Term& a, const Estimate<double>& b, std::string unit) {
  const double corners[] = {a.estimate.low * b.low, a.estimate.low * b.high,
                            a.estimate.high * b.low, a.estimate.high * b.high};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {{a.estimate.value * b.value, *low, *high, std::max(a.estimate.provenance, b.provenance)},
          std::move(unit)};
}

Result<Term> times(const Term& a, const Term& b) {
  if (!a.unit.empty() && !b.unit.empty())
    return fail(fmt::format("'{}' times '{}'", a.unit, b.unit), "one of them a plain number");
  return product(a, b.estimate, a.unit + b.unit);
}

Result<Term> quotient(const Term& a, const Term& b) {
  if (!b.unit.empty() && a.unit != b.unit)
    return fail(fmt::format("'{}' divided by '{}'", a.unit, b.unit), "the same unit, or none");
  const Estimate<double>& by = b.estimate;
  if (by.low <= 0 && by.high >= 0) return fail("division by 0");
  return product(a, {1 / by.value, 1 / by.high, 1 / by.low, by.provenance},
                 b.unit.empty() ? a.unit : "");
}

/// The minimum or the maximum of two, end by end of their intervals.
Result<Term> outermost(const Term& a, const Term& b, bool least) {
  if (a.unit != b.unit)
    return fail(fmt::format("'{}' and '{}' cannot be compared", a.unit, b.unit),
                "terms of one unit");
  const auto of = [least](double x, double y) { return least ? std::min(x, y) : std::max(x, y); };
  return Term{{of(a.estimate.value, b.estimate.value), of(a.estimate.low, b.estimate.low),
               of(a.estimate.high, b.estimate.high),
               std::max(a.estimate.provenance, b.estimate.provenance)},
              a.unit};
}

class Parser {
 public:
  Parser(std::string_view text, const Vocabulary& vocabulary)
      : text_(text), vocabulary_(vocabulary) {}

  Result<Term> all() {
    Term term = TRY(terms());
    if (next() != '\0') return unexpected("an operator or the end");
    return term;
  }

 private:
  static constexpr int kMostDepth = 64;

  Result<Term> terms() {
    Term left = TRY(factors());
    while (next() == '+' || next() == '-') {
      const double sign = take() == '+' ? 1 : -1;
      left = TRY(sum(left, TRY(factors()), sign));
    }
    return left;
  }

  Result<Term> factors() {
    Term left = TRY(primary());
    while (next() == '*' || next() == '/') {
      const char op = take();
      const Term right = TRY(primary());
      left = TRY(op == '*' ? times(left, right) : quotient(left, right));
    }
    return left;
  }

  Result<Term> primary() {
    const char c = next();
    if (c == '(') {
      if (++depth_ > kMostDepth) return fail("parentheses are nested too deeply");
      take();
      Term inner = TRY(terms());
      if (next() != ')') return unexpected("')'");
      take();
      --depth_;
      return inner;
    }
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return word();
    return unexpected("a number or a name");
  }

  /// The least or the greatest of the terms in the parentheses of min and max.
  Result<Term> outermost_of(bool least) {
    if (++depth_ > kMostDepth) return fail("parentheses are nested too deeply");
    take();
    Term found = TRY(terms());
    while (next() == ',') {
      take();
      found = TRY(outermost(found, TRY(terms()), least));
    }
    if (next() != ')') return unexpected("')'");
    take();
    --depth_;
    return found;
  }

  Result<Term> number() {
    double value = 0;
    const auto [rest, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) return unexpected("a number");
    at_ = static_cast<std::size_t>(rest - text_.data());
    return exact_term(value);
  }

  Result<Term> word() {
    const std::string_view name = letters();
    if (next() != '(') return vocabulary_.name(name);
    if (name == "min" || name == "max") return outermost_of(name == "min");
    take();
    std::vector<std::string_view> of;
    do {
      if (!is_letter(next())) return unexpected("a name");
      of.push_back(letters());
    } while (next() == ',' && take() == ',');
    if (next() != ')') return unexpected("')'");
    take();
    return vocabulary_.function(name, of);
  }

  /// REQUIRES: a letter is next.
  std::string_view letters() {
    const std::size_t from = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(from, at_ - from);
  }

  /// The next character that is no blank; '\0' at the end.
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  char take() { return text_[at_++]; }

  tl::unexpected<Error> unexpected(std::string expected) {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    return fail(rest.empty() ? fmt::format("'{}' is incomplete", text_)
                             : fmt::format("unexpected '{}' in '{}'", rest, text_),
                std::move(expected));
  }

  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Term exact_term(double value) { return {{value, value, value, Provenance::kRecorded}}; }

Result<Term> evaluate(std::string_view expression, const Vocabulary& vocabulary) {
  Result<Term> term = Parser(expression, vocabulary).all();
  if (term && !std::isfinite(term->estimate.value))
    return fail(fmt::format("'{}' is not finite", expression));
  return term;
}

}  // namespace rehearse::cli
