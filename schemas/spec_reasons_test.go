package schemas_test

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// reasons is the table of the reason codes with these uses.
func reasons(uses ...schemas.ReasonUse) table {
	t := table{{"reason code", "decision", "outcome", "`rule_id`", "means"}}
	if uses[0] == schemas.ReasonPasses {
		t = table{{"reason code", "decision", "means"}}
	}
	if uses[0] == schemas.ReasonRefuses {
		t = table{{"reason code", "refused"}}
	}
	for i := range schemas.Reasons {
		r := &schemas.Reasons[i]
		switch {
		case !slices.Contains(uses, r.Use):
		case r.Use == schemas.ReasonRefuses:
			t = append(t, []string{code(r.Code), r.Why})
		case r.Use == schemas.ReasonPasses, r.Use == schemas.ReasonStops:
			decision := map[schemas.ReasonUse]string{schemas.ReasonPasses: schemas.DecisionAllow, schemas.ReasonStops: schemas.DecisionDeny}[r.Use]
			t = append(t, []string{code(r.Code), code(decision), r.Why})
		default:
			outcome := "any other than " + code(schemas.OutcomeDenied)
			if r.Use == schemas.ReasonDenies {
				outcome = codes(r.Outcomes())
			}
			t = append(t, []string{code(r.Code), code(r.Decision()), outcome, [...]string{"never", "always", "if a rule was at fault"}[r.Rule], r.Why})
		}
	}
	return t
}
