#include "cli/study/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/base/statistics.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

Status refuse_list(const Term& term) {
  if (term.list.empty()) return {};
  return fail("a list is not a number", "sum, mean, min, max, quantile or share_under of it");
}

Result<Term> sum(const Term& a, const Term& b, double sign) {
  for (const Term* term : {&a, &b}) TRY(refuse_list(*term));
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
    return fail(fmt::format("cannot multiply '{}' by '{}'", a.unit, b.unit),
                "one of them a plain number");
  return product(a, b.estimate, a.unit + b.unit);
}

Result<Term> quotient(const Term& a, const Term& b) {
  if (!b.unit.empty() && a.unit != b.unit)
    return fail(fmt::format("cannot divide '{}' by '{}'", a.unit, b.unit),
                "the same unit, or none");
  const Estimate<double>& by = b.estimate;
  if (by.low <= 0 && by.high >= 0) return fail("division by 0");
  return product(a, {1 / by.value, 1 / by.high, 1 / by.low, by.provenance},
                 b.unit.empty() ? a.unit : "");
}

/// A number of several, which rises with each of them.
using Reduction = double (*)(const std::vector<double>& values, double at);

double sum_of(const std::vector<double>& values, double /*at*/) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}
double mean_of(const std::vector<double>& values, double at) {
  const auto count = static_cast<double>(values.size());
  return sum_of(values, at) / count;
}
double quantile_of(const std::vector<double>& values, double at) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  return quantile(sorted, at);
}
double share_under(const std::vector<double>& values, double at) {
  const auto under = std::ranges::count_if(values, [at](double value) { return value <= at; });
  return static_cast<double>(under) / static_cast<double>(values.size());
}

struct Reducer {
  std::string_view name;
  Reduction of;
  bool has_last = false;  ///< the last argument is not one of the values
};
constexpr Reducer kReducers[] = {
    {"sum", sum_of},
    {"mean", mean_of},
    {"min", [](const std::vector<double>& values, double) { return std::ranges::min(values); }},
    {"max", [](const std::vector<double>& values, double) { return std::ranges::max(values); }},
    {"quantile", quantile_of, true},
    {"share_under", share_under, true}};

/// Each end of the interval is that of the ends of the values. `list` has their unit. REQUIRES: values.
Result<Term> reduced(const Reducer& reducer, const Term& list, const std::optional<Term>& last) {
  const bool shares = reducer.of == share_under;
  if (last && shares && last->unit != list.unit)
    return fail(fmt::format("'{}' and '{}' cannot be compared", list.unit, last->unit),
                "terms of one unit");
  if (last && !shares &&
      !(last->unit.empty() && last->estimate.value >= 0 && last->estimate.value <= 1))
    return fail(fmt::format("the last argument of '{}' is not a share", reducer.name), "0 to 1");
  Provenance provenance = list.list.front().provenance;
  for (const Estimate<double>& value : list.list)
    provenance = std::max(provenance, value.provenance);
  using E = Estimate<double>;
  const auto of = [&](double E::*end, double E::*of_last) {
    std::vector<double> ends;
    ends.reserve(list.list.size());
    for (const E& value : list.list) ends.push_back(value.*end);
    return reducer.of(ends, last ? last->estimate.*of_last : 0);
  };
  const double value = of(&E::value, &E::value);
  // More values are under a bound where they are low and it is high.
  if (shares) return Term{{value, of(&E::high, &E::low), of(&E::low, &E::high), provenance}};
  return Term{{value, of(&E::low, &E::value), of(&E::high, &E::value), provenance}, list.unit};
}

template <class Q>
std::optional<Term> of_quantity(std::string_view text, std::string_view unit) {
  const Result<double> value = parse_si<Q>(text);
  if (!value) return std::nullopt;
  return Term{exact_term(*value).estimate, std::string(unit)};
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
      const Term right = TRY(factors());
      left = TRY(sum(left, right, sign));
    }
    return left;
  }

  Result<Term> factors() {
    Term left = TRY(primary());
    while (next() == '*' || next() == '/') {
      const char op = take();
      const Term right = TRY(primary());
      for (const Term* term : {&std::as_const(left), &right}) TRY(refuse_list(*term));
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
    if (c == '[') {
      Term list;
      TRY(add_terms(']', list, nullptr));
      return list;
    }
    if (is_letter(c)) return word();
    return unexpected("a number or a name");
  }

  /// Reads the terms up to `end` into a list of their values, which have one unit; the last one apart
  /// if `last` is given.
  Status add_terms(char end, Term& list, std::optional<Term>* last) {
    if (++depth_ > kMostDepth) return fail("parentheses are nested too deeply");
    do {
      take();
      Term term = TRY(terms());
      if (last && next() == end) {
        TRY(refuse_list(term));
        *last = std::move(term);
        break;
      }
      if (list.list.empty()) list.unit = term.unit;
      if (term.unit != list.unit)
        return fail(fmt::format("'{}' and '{}' cannot be compared", list.unit, term.unit),
                    "terms of one unit");
      if (term.list.empty()) term.list.push_back(term.estimate);
      list.list.insert(list.list.end(), term.list.begin(), term.list.end());
    } while (next() == ',');
    if (next() != end) return unexpected(fmt::format("',' or '{}'", end));
    if (list.list.empty()) return fail("a value is missing before the last argument", "a list");
    take();
    --depth_;
    return {};
  }

  Result<Term> number() {
    double value = 0;
    const std::size_t from = at_;
    const auto [rest, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) return unexpected("a number");
    at_ = static_cast<std::size_t>(rest - text_.data());
    if (!is_letter(next())) return exact_term(value);
    letters();
    // "GB/s" is one unit; a quotient has the unit of its divisor after a number.
    if (text_.substr(at_).starts_with("/s") && !(at_ + 2 < text_.size() && is_word(text_[at_ + 2])))
      at_ += 2;
    const std::string_view text = text_.substr(from, at_ - from);
    if (std::optional<Term> quantity = quantity_term(text)) return *quantity;
    return fail(fmt::format("'{}' has no known unit", text), "such as 5 ms, 80 GB or 25 GB/s");
  }

  Result<Term> word() {
    const std::string_view name = letters();
    if (next() != '(') return vocabulary_.name(name);
    const auto* const reducer = std::ranges::find(kReducers, name, &Reducer::name);
    if (reducer != std::end(kReducers)) {
      Term list;
      std::optional<Term> last;
      TRY(add_terms(')', list, reducer->has_last ? &last : nullptr));
      return reduced(*reducer, list, last);
    }
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
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
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

std::optional<Term> quantity_term(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && rest == text.data() + text.size()) return exact_term(value);
  for (const std::optional<Term>& found :
       {of_quantity<Seconds>(text, "s"), of_quantity<Bytes>(text, "B"),
        of_quantity<Flops>(text, "FLOP"), of_quantity<ByteRate>(text, "B/s"),
        of_quantity<FlopRate>(text, "FLOP/s"), of_quantity<Joules>(text, "J"),
        of_quantity<Usd>(text, "USD")})
    if (found) return found;
  return std::nullopt;
}

Result<Term> evaluate(std::string_view expression, const Vocabulary& vocabulary) {
  Result<Term> term = Parser(expression, vocabulary).all();
  if (term) TRY(refuse_list(*term));
  if (term && !std::isfinite(term->estimate.value))
    return fail(fmt::format("'{}' is not finite", expression));
  return term;
}

}  // namespace rehearse::cli
