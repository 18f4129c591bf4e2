#include "schema/drift.hpp"

namespace mailroom {

const KnownBodies& original_bodies() {
  static const KnownBodies bodies{
      {"trg_before_account_insert()", {"c1bed63272281e2ed45050a1bc0e0e9243d6821b50e425696f1e8f0ca3c49746"}},
      {"trg_before_account_status_change()",
       {"c1b9e4b4116339ed48da66b595892d7450216d570d29d9eb12d75a30f5f51e8c"}},
      {"trg_after_token_consumed()", {"d5fca2faa6bb98d6aea316be4694fbd389f1261e505be6344b91ea7fde64d986"}},
      {"trg_after_token_inserted()", {"59dc5c147a91e5e16fc8505d8f8ca2c27f4cdbca238f8250bb6b4fea634a8946"}},
  };
  return bodies;
}

}  // namespace mailroom
