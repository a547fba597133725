// Laws of pairs that were fitted to published tables and are shipped with the program, one file per
// GPU (models/sharing/pairs). With them `rehearse pack` predicts two jobs on such a GPU without
// measured pairs.
//
// Source: Gavel's throughputs of pairs of training jobs (stanford-futuredata/gavel, MIT), each pair
// once. Made again by `accuracy make pairs --data DIR --into FOLDER` (docs/decisions/0040).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/sharing/pairs.h"

namespace rehearse::sharing {

struct ShippedPairs {
  std::string device;                  ///< measured device of the catalog
  std::vector<std::string> also = {};  ///< devices for which it is taken over, untested
  std::string source, rows_used, date;
  std::size_t rows = 0;  ///< two for each pair
  double left_out = 0;   ///< mean |error| on pairs left out of the fit, ten parts
  Seconds step_from = Seconds::s(0), step_to = Seconds::s(0);  ///< range of the jobs alone
  std::shared_ptr<const PairLaw> law;
};

const std::vector<ShippedPairs>& shipped_pairs();
/// The shipped law of this GPU; null if there is none.
const ShippedPairs* find_shipped_pairs(std::string_view device);

/// Fails with every error of the text, one line each; `name` is the file name.
Result<ShippedPairs> parse_shipped_pairs(const std::string& text, std::string name);

}  // namespace rehearse::sharing
