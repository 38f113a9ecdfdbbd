package main

import "github.com/runner-evidence/runner/schemas"

// policyFile compares the policy file that a run keeps with what names its digest: the notes of enforced rules, and the decisions about
// tool calls. Sessions of another policy have a code, and runner-proc has policy files of its own.
func (v *verifier) policyFile(p *schemas.RunBytes, fault func(string, string, ...any)) {
	if p == nil {
		return
	}
	v.wrapped.names(p.SHA256, p.Bytes, true)
	if p.Bytes == 0 {
		fault(schemas.MemberRunEnv, "policy is empty, which no policy file is")
	}
	for i := range schemas.Enforcements {
		if note := schemas.Enforcements[i].Note; v.noted(note) && v.noteFields(note)[schemas.KeyPolicy] != p.SHA256 {
			fault(schemas.MemberRunEnv, "policy is %s, note %s says %s", p.SHA256, note.Code, v.noteFields(note)[schemas.KeyPolicy])
		}
	}
	if v.report == nil || v.ambiguities().kinds[schemas.AmbiguitySessionOtherPolicy] > 0 {
		return
	}
	if lines := &v.policy; lines.digest != "" && (lines.digests || lines.digest != p.SHA256) {
		fault(schemas.MemberRunEnv, "policy is %s, a policy line has %s, and no entry %s", p.SHA256, lines.digest, schemas.AmbiguitySessionOtherPolicy)
	}
	if said := v.noteFields(schemas.NoteToolPolicy)[schemas.KeyPolicy]; v.noted(schemas.NoteToolPolicy) && !v.noted(schemas.NoteProcessAPI) && said != p.SHA256 {
		fault(schemas.MemberRunEnv, "policy is %s, note %s says %q, and no entry %s", p.SHA256, schemas.NoteToolPolicy.Code, said, schemas.AmbiguitySessionOtherPolicy)
	}
}
