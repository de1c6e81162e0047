package gate

// Reason is the stable code of a decision. Codes are never renamed or reused;
// the package comment lists what each of them means.
type Reason string

// The reasons, in the order of the rules that give them.
const (
	ReasonModelConfirmParameter Reason = "MODEL_CONFIRM_PARAMETER"
	ReasonArgsInvalid           Reason = "ARGS_INVALID"
	ReasonKindUnknown           Reason = "KIND_UNKNOWN"
	ReasonPermissionReserved    Reason = "PERMISSION_GRANT_RESERVED"

	ReasonTierMissing      Reason = "AUTHORITY_TIER_MISSING"
	ReasonTierUnknown      Reason = "AUTHORITY_TIER_UNKNOWN"
	ReasonCapabilityDenied Reason = "AUTHORITY_CAPABILITY_DENIED"

	ReasonReplyAllowed     Reason = "REPLY_ALLOWED"
	ReasonModelCallAllowed Reason = "MODEL_CALL_ALLOWED"
	ReasonMemoryAllowed    Reason = "MEMORY_ALLOWED"

	ReasonFloorUnknownTool    Reason = "FLOOR_UNKNOWN_TOOL"
	ReasonFloorDeletes        Reason = "FLOOR_DELETES"
	ReasonFloorStandingRule   Reason = "FLOOR_STANDING_RULE"
	ReasonFloorPays           Reason = "FLOOR_PAYS"
	ReasonFloorShares         Reason = "FLOOR_SHARES"
	ReasonFloorPosts          Reason = "FLOOR_POSTS"
	ReasonFloorActsOutside    Reason = "FLOOR_ACTS_OUTSIDE"
	ReasonFloorSendOutside    Reason = "FLOOR_SEND_OUTSIDE"
	ReasonFloorInvitesOutside Reason = "FLOOR_INVITES_OUTSIDE"
	ReasonDirectSend          Reason = "DIRECT_SEND"
	ReasonSaidIntent          Reason = "SAID_INTENT"

	ReasonTaintedOutward    Reason = "TAINTED_OUTWARD"
	ReasonPolicyPreview     Reason = "POLICY_PREVIEW"
	ReasonReversibleOwnData Reason = "REVERSIBLE_OWN_DATA"
	ReasonShortFormAsks     Reason = "SHORT_FORM_ASKS"
	ReasonDefaultAsk        Reason = "DEFAULT_ASK"

	ReasonNoInteractivePath Reason = "NO_INTERACTIVE_PATH"
)
