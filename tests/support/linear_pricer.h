// Prices of steps that a reader can check by hand. They are no prediction.
#pragma once

#include "sim/serving/step.h"

namespace rehearse::test {

/// A step takes a fixed time, and more per prompt token, decode row, draft and cached token of these rows.
struct LinearPricer final : serving::StepPricer {
  Seconds step = Seconds::ms(1), token = Seconds::ms(0), row = Seconds::ms(0),
          cached = Seconds::ms(0), host = Seconds::ms(0), draft = Seconds::ms(0);
  double use = 1;
  serving::RequestTime request_time = {};

  serving::StepTime price(const serving::Step& s) const override {
    Seconds device = step + row * static_cast<double>(s.decode_rows) + cached * s.decode_context +
                     draft * static_cast<double>(s.drafted);
    for (const serving::PrefillChunk& chunk : s.prefill)
      device += token * static_cast<double>(chunk.new_tokens);
    return {.device = device, .host = host, .use = use};
  }
  serving::RequestTime request(std::int64_t) const override { return request_time; }
  Estimate<double> reach() const override { return {1, 0.9, 1.1, Provenance::kInterpolated}; }
};

}  // namespace rehearse::test
