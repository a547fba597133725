#include "cli/recommending/search_offers.h"

#include "cli/config/named_files.h"

namespace rehearse::cli {

Result<cost::Recommendation> search_offers(
    const std::filesystem::path& file, const cost::Wish& wish,
    const std::vector<cost::Offer>& offers,
    const std::function<cost::Evaluator(SpreadOf)>& evaluator, const Globals& globals,
    SharedWork& shared) {
  const auto inputs = [&]() -> Result<work::Fingerprint> {
    work::Fingerprint fingerprint;
    TRY(fingerprint.add_program());
    TRY(add_with_named_files(fingerprint, file));
    return fingerprint;
  };
  work::ExecutionOptions execution = TRY(shared.begin("", "offers for " + file.string(), inputs));
  // Offers are evaluated on threads already, and have one line of progress.
  execution.threads = 1;
  execution.progress = [](double) { return !interrupted.load(); };
  const SpreadOf spread = [&execution](const std::string& name) {
    return spread_of(execution, name + ": ");
  };
  Result<cost::Recommendation> found =
      cost::recommend(wish, offers, evaluator(spread), globals.thread_count(),
                      globals.progress_of("evaluating offers"));
  if (!found && interrupted) return tl::unexpected(work::stopped(execution.journal));
  return found;
}

}  // namespace rehearse::cli
