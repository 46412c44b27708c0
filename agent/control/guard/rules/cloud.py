"""Cloud and infrastructure (A15)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A15", category="cloud")

RULES: tuple[Rule, ...] = (
    _rule(
        id="terraform.apply",
        programs="terraform tofu terragrunt",
        text=(
            r"(?:^|\s)(?:destroy|apply\s+(?:\S+\s+)*-(?:auto-approve|destroy)"
            r"|apply\b(?=.*-auto-approve)|run-all\s+(?:apply|destroy)|taint|untaint|force-unlock"
            r"|import|state\s+(?:rm|mv|push|replace-provider)|workspace\s+delete)(?:\s|$)"
        ),
        reason="It changes or destroys infrastructure.",
        alternative="Run plan first.",
        match=(
            "terraform destroy -auto-approve",
            "terraform apply -auto-approve",
            "terraform state rm aws_instance.web",
        ),
        spare=(
            "terraform plan -destroy -out=plan.bin",
            "terraform plan",
            "terraform show -json plan.bin",
            "terraform init",
        ),
    ),
    _rule(
        id="terraform.apply-plain",
        programs="terraform tofu terragrunt",
        verbs=("apply",),
        reason="It changes infrastructure.",
        match=("terraform apply",),
        spare=("terraform validate",),
    ),
    _rule(
        id="cloud.pulumi",
        programs="pulumi cdk cdktf sam serverless sls copilot eksctl crossplane amplify kops sst chalice zappa up",
        text=(
            r"(?:^|\s)(?:destroy|up\b(?=.*(?:--yes|-y|--skip-preview))|down|remove|delete"
            r"|stack\s+rm|state\s+(?:delete|unprotect)|cancel|refresh\s+.*(?:--yes|-y)"
            r"|deploy\s+.*--require-approval[= ]never|undeploy|delete\s+\S+)(?:\s|$)"
        ),
        reason="It changes or destroys infrastructure.",
        match=("pulumi destroy --yes", "cdk destroy --force"),
        spare=("pulumi preview", "cdk diff"),
    ),
    _rule(
        id="aws.delete",
        programs="aws awslocal",
        text=(
            r"^(?:--\S+(?:[= ]\S+)?\s+)*[\w-]+\s+(?:s3\s+)?(?:delete|destroy|terminate|purge"
            "|remove|rm|rb|deregister|detach|disable|revoke|release|reset|stop|reboot|deallocate"
            r"|drop|cancel|disassociate|wipe|abandon|undeploy|teardown|uninstall)(?:-[\w-]+"
            r")?(?:\s|$)(?!help\b)"
        ),
        reason="It deletes or stops something in the cloud.",
        match=(
            "aws s3 rm s3://bucket/backups --recursive",
            "aws s3 rb s3://bucket --force",
            "aws ec2 terminate-instances --instance-ids i-0abc",
            "aws --profile prod rds delete-db-instance --db-instance-identifier db1",
        ),
        spare=(
            "aws s3 ls s3://bucket --recursive",
            "aws ec2 describe-instances --filters Name=tag:env,Values=prod",
            "aws s3 rm s3://bucket/tmp --recursive --dryrun",
            "aws s3 rm help",
        ),
    ),
    _rule(
        id="aws.sync-delete",
        programs="aws gsutil gcloud azcopy rclone s3cmd mc b2",
        text=r"\bsync\b.*(?:--delete\b|--delete-\S+|\s-d(?:\s|$)|--remove)|\b(?:mirror)\b.*--remove",
        reason="It deletes what the source lacks.",
        match=("aws s3 sync ./site s3://bucket --delete",),
        spare=("aws s3 sync s3://bucket ./site",),
    ),
    _rule(
        id="aws.rights",
        programs="aws awslocal",
        text=(
            r"\biam\s+(?:attach|put|create|add|update|upload|set|pass)-|\bput-(?:bucket-(?:policy"
            "|acl)|object-acl|role-policy|user-policy|public-access-block|key-policy)"
            r"|\bauthorize-security-group|\bmodify-(?:instance-attribute|db-instance"
            r"|image-attribute|snapshot-attribute)|\bset-(?:default-policy-version)"
            r"|\brun-instances|\bupdate-function-code|\bcreate-(?:access-key|login-profile|grant"
            r"|stack|user|role|key-pair)|\badd-permission|\bsend-command|\bexecute-command"
            r"|\bupdate-stack|\bstart-session"
        ),
        reason="It gives rights or starts something in the cloud.",
        match=(("aws iam attach-user-policy --user-name x --policy-arn arn:aws:iam::aws:policy/AdministratorAccess"),),
        spare=("aws iam list-users",),
    ),
    _rule(
        id="gcloud.delete",
        programs=(
            "gcloud gsutil bq az doctl linode-cli hcloud scw ibmcloud oci exo vultr-cli civo"
            " flyctl fly vercel netlify railway render wrangler firebase supabase ovhcloud"
            " openstack nova cf aliyun yc"
        ),
        without="--dry-run",
        text=(
            r"(?:^|\s)(?:delete|destroy|terminate|purge|remove|rm|rb|deregister|detach|disable"
            "|revoke|release|reset|stop|reboot|deallocate|drop|cancel|disassociate|wipe|abandon"
            r"|undeploy|teardown|uninstall)(?:[-:][\w-]+)?(?:\s|$)|(?:^|\s)[\w-]+:(?:delete"
            r"|destroy|remove|disable)\b"
        ),
        reason="It deletes or stops something in the cloud.",
        match=(
            "gcloud projects delete my-proj --quiet",
            "gsutil -m rm -r gs://bucket/**",
            "az group delete -n rg-prod --yes",
        ),
        spare=("gcloud projects list", "az account show", "gcloud compute instances delete --help"),
    ),
    _rule(
        id="gcloud.rights",
        programs="gcloud az",
        text=(
            "add-iam-policy-binding|set-iam-policy|role assignment create|ad sp create"
            r"|service-accounts keys create|keys create|iam ch\b|policy assignment create|ad app"
            " credential|create-for-rbac"
        ),
        reason="It gives rights in the cloud.",
        match=("gcloud projects add-iam-policy-binding p --member=x --role=roles/owner",),
        spare=("gcloud iam roles list",),
    ),
    _rule(
        id="gh.delete",
        programs="gh glab hub tea",
        text=(
            r"^(?:(?:-R|--repo)[= ]\S+\s+)*(?:repo\s+(?:delete|archive|rename|edit|transfer)"
            r"|release\s+delete\S*|secret\s+(?:set|delete|remove)|variable\s+(?:set|delete)"
            r"|(?:ssh|gpg|deploy)-key\s+(?:add|delete)|repo\s+deploy-key\s+(?:add|delete)"
            r"|(?:issue|label|gist|cache|project|run|ruleset|codespace|extension)\s+(?:delete"
            r"|remove|transfer)|auth\s+(?:logout|refresh|login.*--with-token)|extension\s+install"
            r"|workflow\s+(?:disable|enable)|api\b.*(?:-X\s*DELETE|--method[= ]DELETE)"
            r"|codespace\s+stop|pr\s+merge\b.*--admin)(?:\s|$)"
        ),
        reason="It deletes something or changes rights on the code host.",
        match=("gh repo delete acme/shop --yes", "gh release delete v1.0 -y"),
        spare=(
            "gh pr list --search 'delete in:title'",
            "gh issue view 42",
            "gh pr create --title 'Drop table users' --body 'see #12'",
        ),
    ),
    _rule(
        id="heroku.destroy",
        programs="heroku dokku eb now surge platform cap",
        text=(
            r"(?:^|\s)(?:\S+:(?:destroy|remove|reset|delete|stop|restart|kill|unset|set|rollback)"
            r"|restart|terminate|destroy|rm|remove|teardown|environment:delete)(?:\s|$)"
        ),
        reason="It destroys or restarts an application.",
        match=("heroku apps:destroy shop --confirm shop", "heroku pg:reset DATABASE"),
        spare=("heroku apps", "heroku logs -t"),
    ),
    _rule(
        id="ansible.run",
        programs="ansible",
        without="-C --check",
        text=(
            r"-m\s*(?:file|user|group|service|systemd|apt|yum|dnf|package|copy|template|reboot"
            r"|lineinfile|cron|mount|iptables)\b(?=.*(?:-a|state=|-b))"
        ),
        reason="It changes every host.",
        match=("ansible all -b -m service -a 'name=x state=stopped'",),
        spare=("ansible all -m ping",),
    ),
    _rule(
        id="ansible.playbook",
        programs="ansible-playbook ansible-pull salt salt-call puppet chef-client knife",
        text=r"^(?!.*(?:--check|-C\b|--syntax-check|--list-\S+|--noop|test=True|--version|test\.ping|--why-run)).+",
        reason="It changes hosts.",
        match=("ansible-playbook site.yml",),
        spare=("ansible-playbook site.yml --check --diff", "ansible-playbook site.yml --syntax-check"),
    ),
    _rule(
        id="cloud.packer",
        programs="packer nixos-rebuild nix-collect-garbage",
        text=r"(?:^|\s)(?:build|switch|boot|test|-d|--delete-old|--delete-older-than)(?:\s|$)",
        reason="It builds or changes machines.",
        match=("nixos-rebuild switch",),
        spare=("packer validate x.pkr.hcl",),
    ),
)
