// Sets collect up for a program or server in place of stdout.
#pragma once

#include "cmd/collect/consumer_run.hpp"

namespace mailroom {

/// How collect hands its batches over, as sink.to or sink.exec says. Throws Error(configuration).
CollectorSetup handover_setup(const Settings& settings, const ConsumerParts& parts, Log& log);

}  // namespace mailroom
