#include <type_traits>

#include <catch2/catch.hpp>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};

// What means nothing does not compile.
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>);
static_assert(!Addable<Bytes, double>);
static_assert(!Multipliable<Bytes, Bytes>);
static_assert(!Multipliable<Seconds, Seconds>);
static_assert(!Divisible<Seconds, Bytes>);
static_assert(!std::is_default_constructible_v<Bytes>);
static_assert(!std::is_convertible_v<double, Seconds>);
static_assert(!std::is_convertible_v<Nanoseconds, Picoseconds>);
static_assert(std::is_same_v<decltype(Bytes::gb(1) / ByteRate::gb_per_s(1)), Seconds>);
static_assert(std::is_same_v<decltype(Bytes::gb(1) / Bytes::gb(1)), double>);
static_assert(std::is_same_v<decltype(Watts::w(1) * Seconds::s(1)), Joules>);

template <class Q>
std::string error_of(std::string_view text) {
  const Result<Q> parsed = parse_quantity<Q>(text);
  return parsed ? "no error" : to_string(parsed.error());
}

TEST_CASE("a size divided by a rate is a time") {
  // 80 GiB over 2 GB/s: 80 x 1024^3 / 2e9 = 42.949673 s.
  CHECK((Bytes::gib(80) / ByteRate::gb_per_s(2)).s() == Approx(42.94967296));
  CHECK((ByteRate::gbit_per_s(400)).gb_per_s() == Approx(50));
  CHECK((Watts::w(700) * Seconds::s(3600)).kwh() == Approx(0.7));
  CHECK((Flops::tflop(2) / FlopRate::tflop_per_s(1)).s() == Approx(2));
}

TEST_CASE("quantities are read with their unit") {
  CHECK(parse_quantity<Seconds>("2.4 ms")->ms() == Approx(2.4));
  CHECK(parse_quantity<Seconds>("30us")->us() == Approx(30));
  CHECK(parse_quantity<Seconds>("5 µs")->us() == Approx(5));
  CHECK(parse_quantity<Bytes>("80 GiB")->gib() == Approx(80));
  CHECK(parse_quantity<Bytes>("1 GB")->b() == 1e9);
  CHECK(parse_quantity<ByteRate>("200 Gbit/s")->gb_per_s() == Approx(25));
  CHECK(parse_quantity<FlopRate>("989 TFLOP/s")->tflop_per_s() == Approx(989));
  CHECK(parse_quantity<Joules>("2 kWh")->j() == Approx(7.2e6));
  CHECK(parse_quantity<Usd>("12.5 USD")->usd() == Approx(12.5));
}

TEST_CASE("the error of a wrong quantity gives a correct one") {
  CHECK(error_of<Seconds>("3") == "'3' has no unit; one of ps, ns, us, ms, s, min, h, d");
  CHECK(error_of<ByteRate>("3 GBs") ==
        "unknown unit 'GBs' for a transfer rate; did you mean 'GB/s'?");
  // Bits are no bytes, and what is near by its letters may be a thousand times off.
  CHECK(error_of<ByteRate>("100 Gb/s") ==
        "unknown unit 'Gb/s' for a transfer rate; for bits write '100 Gbit/s', which is 12.5 GB/s");
  CHECK(error_of<ByteRate>("400Gbps").find("'400 Gbit/s', which is 50.0 GB/s") !=
        std::string::npos);
  CHECK(error_of<Bytes>("3 Gb").find("did you mean") == std::string::npos);
  CHECK(error_of<Seconds>("3 ks").find("did you mean") == std::string::npos);
  CHECK(error_of<Bytes>("many") == "'many' is not a size; a number and a unit, such as '2.5 B'");
  CHECK(error_of<Bytes>("1e308 TiB") == "'1e308 TiB' is out of range; at most 1e+18 B");
  CHECK(error_of<ByteRate>("1e-320 GB/s") ==
        "'1e-320 GB/s' is out of range; 0, or at least 1e-30 B/s");
  CHECK(error_of<Bytes>("nan GiB").find("is not a size") != std::string::npos);
}

TEST_CASE("quantities print three digits in the unit that suits them") {
  CHECK(to_string(Seconds::ms(2.4)) == "2.40 ms");
  CHECK(to_string(Seconds::s(0)) == "0 s");
  CHECK(to_string(Seconds::us(999.9)) == "1.00 ms");
  CHECK(to_string(Seconds::s(-0.5)) == "-500 ms");
  CHECK(to_string(Seconds::s(90)) == "1.50 min");
  CHECK(to_string(Bytes::gib(11.25)) == "11.2 GiB");
  CHECK(to_string(ByteRate::gbit_per_s(400)) == "50.0 GB/s");
  CHECK(to_string(Usd::usd(1234.5)) == "1234.50 USD");
  CHECK(to_string(Usd::usd(0.0011584)) == "0.00116 USD");
  CHECK(to_string(Usd::usd(0)) == "0 USD");
}

TEST_CASE("printing and reading agree to the digits printed") {
  for (const double s : {1e-12, 3.21e-9, 4.56e-5, 0.789, 1.0, 59.0, 61.0, 4e3, 9e4, 1e6}) {
    const Seconds seconds = Seconds::s(s);
    CHECK(parse_quantity<Seconds>(to_string(seconds))->s() == Approx(s).epsilon(0.006));
  }
}

TEST_CASE("integer time converts exactly") {
  CHECK(Picoseconds::from(Nanoseconds(7)).count() == 7000);
  CHECK(Picoseconds::from(Seconds::us(1)).count() == 1'000'000);
  CHECK(Nanoseconds(1'500'000'000).seconds().s() == 1.5);
  CHECK((Picoseconds(10) * 0.25).count() == 3);  // rounds to nearest
  CHECK_THROWS_AS(Picoseconds::from(Seconds::s(1e9)), Fault);
}

}  // namespace
}  // namespace rehearse
