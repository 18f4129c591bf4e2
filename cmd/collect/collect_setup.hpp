// The setup of a collector: of any, and of one with a program or server in place of stdout.
#pragma once

#include "cmd/collect/consumer_run.hpp"

namespace mailroom {

/// What collect does with any sink, which is still to be set. Throws Error(configuration).
ConsumerSetup collect_setup(const Settings& settings);

/// How collect hands its batches over, as sink.to or sink.exec says. Throws Error(configuration).
ConsumerSetup handover_setup(const Settings& settings, const ConsumerParts& parts, Log& log);

}  // namespace mailroom
