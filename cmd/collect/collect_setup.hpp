// The setup of a collector as far as it does not depend on the sink.
#pragma once

#include "cmd/collect/consumer_run.hpp"

namespace mailroom {

/// What collect does with any sink; sink and session are still to be set. Throws Error(configuration).
CollectorSetup collect_setup(const Settings& settings);

}  // namespace mailroom
