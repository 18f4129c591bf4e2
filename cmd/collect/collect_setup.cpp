// Translates settings into the options of Batcher, with the defaults that each queue defines.

#include "cmd/collect/collect_setup.hpp"

namespace mailroom {
namespace {

Batcher::Options batcher_options(const Settings& settings) {
  Batcher::Options options{.batch_timeout = settings.batch_timeout.max,
                           .poll_interval = settings.poll_interval,
                           .line_limit = settings.batch_limit.max,
                           .lines_per_claim = settings.lines_per_claim};
  if (!settings.batch_limit.is_fixed() || !settings.batch_timeout.is_fixed()) {
    options.adaptive = Batcher::Adaptive{.min_limit = settings.batch_limit.min,
                                         .min_timeout = settings.batch_timeout.min,
                                         .line_cost = settings.line_cost};
  }
  return options;
}

}  // namespace

CollectorSetup collect_setup(const Settings& settings) {
  return {.connect = {},
          .session_identity = {},
          .key = load_key_ring(settings).current,
          .make_sink = {},
          .queues = settings.queues,
          .turns = {.batcher = batcher_options(settings),
                    .batcher_of =
                        [settings](const QueueDefinition& queue) {
                          return batcher_options(with_queue_defaults(settings, queue.name, queue.batch_limit,
                                                                     queue.batch_timeout));
                        },
                    .max_wait = settings.max_wait},
          .notify_always = settings.notify == NotifyWhen::always,
          .healthcheck_interval = settings.healthcheck_interval};
}

}  // namespace mailroom
