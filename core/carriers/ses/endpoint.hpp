// Where Amazon SES listens: its endpoint of a region, or one that the settings name.
#pragma once

#include <string>

#include "carriers/http/exchange.hpp"
#include "config/settings.hpp"

namespace mailroom {

struct SesEndpoint {
  std::string region;
  HttpEndpoint http;  ///< its URL has no slash at its end
  std::string host;   ///< as the header Host has it
};

/// The endpoint of send.relay, which is one `ses://REGION`, with send.ses_endpoint and the options of all
/// relays. Throws Error(configuration) for another URL, and for what is no name of a region.
SesEndpoint parse_ses_endpoint(const Settings& settings);

}  // namespace mailroom
